// The results of a table, one JSON object a line: a cell where it has a key, else networks on the clock. Lines are only added,
// by several commands in turn, and of two lines for the same thing the later one counts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/timing/summary.h"
#include "core/config/fields.h"
#include "core/io/vfs.h"
#include "train/reproduce/cell_result.h"
#include "train/reproduce/table_file.h"

namespace tessera {

struct ArmTime {
  std::string arm;
  Summary time;  // milliseconds of a batch
  std::optional<Summary> speedup;  // over the line's first network, in the same rounds; always there in the file
  std::optional<double> alone{};  // milliseconds, of the network timed alone; not in files of older programs
  std::optional<double> of_medians{};  // the speed-up by the two medians: not in the file, which has both
  void fields(Fields& f);
};

// Networks of arms on the clock, at one input shape and batch size, in turn.
struct ArmTimes {
  std::string networks;  // TimedGroup::key
  std::int64_t batch = 0;
  std::string phase{name_of(Phase::inference)};
  std::vector<ArmTime> arms;  // the first is the one that speed-ups are over
  std::string commit;
  std::string processor;
  std::int64_t threads = 0;
  void fields(Fields& f);
};

class ResultsFile {
 public:
  // A last line without its end is one that a killed process left: it is cut off by the next append. Throws IoError naming file
  // and line on anything else that is no result.
  ResultsFile(Vfs& vfs, std::string path);

  const CellResult* find(const std::string& key, std::int64_t seed) const;
  // The times of these networks, with speed-ups over the network of the arm `first`.
  const ArmTimes* find_times(const std::string& networks, const std::string& first, const TimedBatch& timed) const;
  std::span<const CellResult> cells() const { return cells_; }

  void reload();  // with what other commands have added
  void append(const CellResult& cell);  // on stable storage when it returns
  void append(const ArmTimes& times);

 private:
  void read_all();
  void append_line(const Value& line);

  Vfs& vfs_;
  std::string path_;
  std::int64_t length_ = 0;  // of whole lines
  std::vector<CellResult> cells_;
  std::vector<ArmTimes> times_;
};

}  // namespace tessera

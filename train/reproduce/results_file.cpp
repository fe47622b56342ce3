#include "train/reproduce/results_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/config/read.h"
#include "core/support/error.h"
#include "train/checkpoint/run_lock.h"
#include "train/run/json_lines.h"

namespace tessera {
namespace {

struct SummaryFields {
  Summary summary;
  void fields(Fields& f) {
    f.add("median", summary.median, {.help = "over the rounds", .clock = true});
    f.add("p10", summary.p10, {.help = "tenth percentile", .clock = true});
    f.add("p90", summary.p90, {.help = "ninetieth percentile", .clock = true});
  }
};

}  // namespace

void ArmTime::fields(Fields& f) {
  SummaryFields time_fields{time};
  std::optional<SummaryFields> speedup_fields;
  if (speedup) speedup_fields = SummaryFields{*speedup};
  f.add("arm", arm, {.help = "its name"});
  f.add("ms", time_fields, {.help = "milliseconds of a batch"});
  f.add("speedup", speedup_fields, {.help = "over another arm's network, in the same rounds"});
  f.add("alone_ms", alone, {.help = "milliseconds of a batch, of the network timed alone", .clock = true});
  time = time_fields.summary;
  speedup.reset();
  if (speedup_fields) speedup = speedup_fields->summary;
}

void ArmTimes::fields(Fields& f) {
  f.add("networks", networks, {.help = "hash of the cells that were timed"});
  f.add("batch", batch, {.help = "samples of a batch"});
  f.add("phase", phase, {.help = "inference, decode, or the forward and backward of training", .choices = phase_names()});
  f.add("arms", arms, {.help = "the one that speed-ups are over first"});
  f.add("commit", commit, {.help = "of the program"});
  f.add("processor", processor, {.help = "that was timed"});
  f.add("threads", threads, {.help = "for kernels; 0 on a GPU"});
}

ResultsFile::ResultsFile(Vfs& vfs, std::string path) : vfs_(vfs), path_(std::move(path)) { read_all(); }

void ResultsFile::read_all() {
  cells_.clear();
  times_.clear();
  length_ = 0;
  if (!vfs_.exists(path_)) return;
  const std::string text = vfs_.read_file(path_);
  std::size_t number = 1;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1, ++number) {
    const std::string where = str(path_, ':', number);
    const Value line = parse_json(std::string_view(text).substr(begin, end - begin), where);
    try {
      if (line.find("key") != nullptr) {
        cells_.push_back(read<CellResult>(line));
      } else {
        times_.push_back(read<ArmTimes>(line));
      }
    } catch (const ConfigError& error) {
      throw IoError(str(where, ": is no result of a table: ", error.what()));
    }
    length_ = static_cast<std::int64_t>(end + 1);
  }
}

const CellResult* ResultsFile::find(const std::string& key, std::int64_t seed) const {
  const auto found =
      std::find_if(cells_.rbegin(), cells_.rend(), [&](const CellResult& cell) { return cell.key == key && cell.seed == seed; });
  return found == cells_.rend() ? nullptr : &*found;
}

const ArmTimes* ResultsFile::find_times(const std::string& networks, const std::string& first, const TimedBatch& timed) const {
  const auto found = std::find_if(times_.rbegin(), times_.rend(), [&](const ArmTimes& times) {
    return times.networks == networks && !times.arms.empty() && times.arms.front().arm == first && times.batch == timed.batch &&
           times.phase == name_of(timed.phase);
  });
  return found == times_.rend() ? nullptr : &*found;
}

void ResultsFile::reload() { read_all(); }

void ResultsFile::append(const CellResult& cell) { append_line(write(cell)); }

void ResultsFile::append(const ArmTimes& times) { append_line(write(times)); }

void ResultsFile::append_line(const Value& line) {
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  const FileLock turn(path_);
  read_all();  // another command may have added lines
  JsonLines file(path_, length_);
  file.append(line);
  file.sync();
  read_all();
}

}  // namespace tessera

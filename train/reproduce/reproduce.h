// Runs what a table file asks for and has no result yet, and writes the table.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/io/vfs.h"
#include "train/reproduce/table_view.h"
#include "train/run/stop.h"

namespace tessera {

struct ReproduceOptions {
  std::string runs = "runs";  // run folders stand in runs/<table>/<cell>/<n>
  std::string results;  // folder of the results and of the table; "" = results/ beside the table file
  std::ostream* out = nullptr;
  bool terminal = false;
  StopRequest stop = {};
  std::string cell = {};  // this one alone, beside other calls that run others; "" = all
};

struct ReproduceReport {
  bool stopped = false;
  std::vector<std::string> failures;  // "cell: reason", of cells that a second call would try again
  std::vector<std::string> written;  // files of the table
};

// Cell after cell: one that has a result is left alone, one whose run is half done goes on, one whose first stages another run
// has trained forks from there. A cell that fails stops no other. Each result is appended to <results>/<table>.jsonl, and the
// table is written to <table>.md, .csv, .json and .svg after each. Networks are timed in turn once all cells have their results;
// a call for one cell leaves that to one for all.
// Throws ConfigError with every problem of the table file and of the experiments of cells that have no result, before any
// training.
ReproduceReport reproduce(Vfs& vfs, const std::string& table_file, const ReproduceOptions& options);

// What is said where no cell is left to run.
inline constexpr std::string_view kNothingLeft =
    "every cell has its result; --results FOLDER runs the cells again, into another folder";

// What reproduce() would do now.
struct PlannedCell {
  std::string cell;  // "dense-lr0.1-seed1"; "dense-seed2" where the choice is not made yet
  std::string way;  // "done", or as way_text()
  std::int64_t steps = 0;  // of training that are left
  double seconds = 0;  // that they may take: by results of the arm, or by its dense network's training step, timed now
};
std::vector<PlannedCell> plan_table(Vfs& vfs, const std::string& table_file, const ReproduceOptions& options);

}  // namespace tessera

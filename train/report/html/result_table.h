// A finished table: the JSON of `tessera reproduce`, of `tessera table --format json`, or what a run's report says of its stages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/timing/summary.h"
#include "core/io/vfs.h"
#include "train/report/html/html_table.h"
#include "train/tasks/metric.h"

namespace tessera {

struct TimedResult {
  std::string at;  // "batch 128, inference"
  Summary time;  // milliseconds of a batch
  std::optional<Summary> speedup{};
  std::optional<double> of_medians{};  // the speed-up by the two medians; not in tables of older programs
};

struct ResultRow {
  std::string name;  // of the arm, or of experiment and stage
  bool baseline = false;
  std::optional<double> value{};  // mean of the metric on the test split; empty where no seed has a figure
  std::optional<double> deviation{};  // of three seeds or more
  std::int64_t seeds = 0;
  std::optional<std::int64_t> parameters{}, macs{}, file_bytes{};
  std::vector<TimedResult> times{};
  std::string settings{};  // of an arm: "optimizer.lr 0.1"; empty where nothing was tuned; a stage has none of these
  std::string against{};  // the arm that it is compared with; empty of the baseline
  std::string seed_list{};  // "1, 2, 3"
  std::string stages{};  // "dense, factored, tuned"
  std::optional<std::int64_t> steps{};  // training steps of the first seed
  std::optional<double> train_seconds{};  // likewise
};

// Where results were made.
struct ResultMachine {
  std::string commit;  // of the program; empty where the file does not tell it
  std::string processor;
  std::int64_t threads = 0;
  std::int64_t results = 0;  // cells of a reproduced table, else rows
};

struct ResultTable {
  std::string path;
  std::string name{};
  std::string timed_on{};
  std::string command{};  // that makes it; empty where the file does not tell it
  const Metric* metric = nullptr;  // null where no row has a figure
  std::vector<ResultRow> rows{};
  std::vector<std::string> answers{};  // to the table file's questions
  std::vector<ResultMachine> machines{};
};

// Throws IoError naming the file and the row on one that is missing, damaged or something else.
ResultTable read_result_table(Vfs& vfs, const std::string& path);

HtmlTable to_table(const ResultTable& results, const std::string& id);
HtmlTable settings_table(const ResultTable& results, const std::string& id);  // of reproduced arms; other results have no row
HtmlTable machines_table(const ResultTable& results, const std::string& id);

// "1.39 (1.33-1.43)" with the number that it is sorted by; "-" of none.
HtmlCell number_cell(const std::optional<double>& value, const char* format);
HtmlCell count_cell(const std::optional<std::int64_t>& value);

}  // namespace tessera

// A table file with its results, row by row: what the pages and the picture show.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/shape.h"
#include "train/report/statistics.h"
#include "train/reproduce/results_file.h"
#include "train/reproduce/table_file.h"
#include "train/tasks/builtin.h"

namespace tessera {

// Each arm's setting. Empty while a tuned arm has no choice yet, because results of the tuning seed are missing.
struct ArmChoice {
  const ArmConfig* arm = nullptr;
  bool settled = false;
  std::optional<double> tuned{};  // the value chosen; empty in a table that tunes nothing
  std::vector<std::string> keys{};  // Cell::key of each value of TuneConfig, in its order; one without
  std::vector<Shape> inputs{};  // what the network reads of one sample with each, [1, ...]
  std::string key{};  // of the choice

  const Shape& input() const;  // with the choice, of a settled one
};

// The value with the best validation metric; of equal ones the first. A run that failed counts as the worst, one without a figure
// of val as worse than any that has one.
void choose(ArmChoice& choice, const TableFile& table, const ResultsFile& results);

struct StageMean {
  std::string stage;
  std::vector<double> tests{};  // the metric on the test split, one for each seed that ran; residuals likewise
  std::vector<double> residuals{};
  std::int64_t parameters = 0;  // of the first seed, like macs and sparsity
  std::int64_t macs = 0;
  double sparsity = 0;
};

struct ArmRow {
  std::string arm;
  std::optional<double> tuned{};
  Shape input{};  // what the network reads of one sample, [1, ...]
  std::string against{};  // the arm that it is compared with: the one that it names, else the baseline; itself for that
  std::vector<CellResult> cells{};  // one per seed that has a result, in the file's order
  std::vector<std::string> failures{};  // "seed 2: ..." of the others that will have none
  MeanInterval difference{};  // of the metric to that of `against`, paired by seed; n = 0 for the baseline
  std::vector<StageMean> stages{};
  // For each of TableFile::timed(). A speed-up is over `against`; there is none where that reads another input.
  std::vector<std::optional<ArmTime>> times{};

  bool is_baseline() const { return against == arm; }
  std::vector<double> tests() const;
  double train_seconds() const;  // median over the seeds
};

struct QuestionAnswer {
  QuestionConfig question;
  const Metric* metric = &usual_metric();
  MeanInterval difference{};
};

struct TableView {
  TableFile file;
  const Metric* metric = &usual_metric();  // that the cells are judged by
  std::vector<ArmRow> rows{};  // arms with a result, in the file's order
  std::vector<QuestionAnswer> answers{};
  std::size_t cells = 0;  // cells with a result
  std::size_t wanted = 0;  // cells that the table will have in the end
  std::string timed_on{};  // empty before the networks were timed
  std::vector<std::string> commits{};  // of the programs that these results come from, each once

  bool has_inputs() const;  // whether its arms read inputs of different shapes
  bool has_against() const;  // whether an arm is compared with another one than the baseline
};

TableView view_of(const TableFile& table, std::span<const ArmChoice> arms, const ResultsFile& results);

}  // namespace tessera

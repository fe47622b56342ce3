// What a finished cell came to: a line of the table's results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/io/vfs.h"
#include "train/reproduce/cell.h"
#include "train/run/run_folder.h"
#include "train/tasks/metric.h"

namespace tessera {

struct StageOutcome {
  std::string stage;
  std::optional<Scored> test{};  // on the test split, with the stage's last weights; there in every result
  std::optional<double> val{};  // at its end; empty for a stage that does not train, and without a val split
  std::int64_t parameters = 0;
  std::int64_t macs = 0;  // per sample
  double sparsity = 0;  // of its weights (layers/weight_count.h)
  std::optional<double> residual{};  // largest ||W - Z|| / ||W|| after the last update of an ADMM stage
  void fields(Fields& f);
};

struct CellResult {
  std::string key;  // Cell::key
  std::string name;  // the cell's
  std::string arm;
  std::int64_t seed = 0;
  std::optional<double> tuned{};
  std::optional<std::string> failed{};  // why the run gives no figure: it came to NaN or Inf
  std::vector<StageOutcome> stages;
  double train_seconds = 0;  // of the training steps, shared stages included
  std::int64_t steps = 0;  // training steps
  std::int64_t file_bytes = 0;  // of the final weights
  // Layers that the last pass matched, and those of them that it left compressed: the verdict of `keep: faster`. Empty without a
  // pass.
  std::optional<std::int64_t> matched_layers{};
  std::optional<std::int64_t> compressed_layers{};
  std::string commit;
  std::string processor;
  std::int64_t threads = 0;
  void fields(Fields& f);

  double test() const { return stages.back().test->value; }
  std::optional<double> val() const;  // of the last stage that has one
};

// Evaluates the stages' ends of a finished run.
CellResult measure_cell(Vfs& vfs, const Cell& cell, const RunFolder& run);
CellResult failed_cell(const Cell& cell, const std::string& reason);

}  // namespace tessera

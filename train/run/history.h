// What a run's stages came to. Times in it are recorded decisions, and all else is reproducible. Part of every checkpoint, so
// that report.md and layers.csv of a resumed run are those of one that was never interrupted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/layer_report.h"
#include "core/config/fields.h"
#include "train/run/position.h"

namespace tessera {

struct StageRecord {
  std::string name;
  bool done = false;  // from then on the members below are known
  std::int64_t steps = 0;
  std::int64_t end_step = 0;  // of the run
  std::optional<double> loss{};  // mean over the last logged interval; this and the next three are empty without training
  std::optional<Scored> last{};  // the task's first metric on val, at the end; empty without a val split
  std::optional<Scored> best{};
  std::optional<std::int64_t> best_step{};
  std::optional<double> sparsity{};  // of the network's weights at its end (layers/weight_count.h); empty where none is pruned
  std::vector<PassReport> passes{};

  void fields(Fields& f);
};

struct RunHistory {
  std::vector<StageRecord> stages;  // begun, in order

  void fields(Fields& f);
  StageRecord& of(const std::string& stage);  // the last record; made when it is another stage's
  bool any_done() const;
};

// The content of layers.csv: every pass's layers.
std::string layers_csv(const RunHistory& history);
bool has_layers(const RunHistory& history);

// The content of report.md: the stages that are done. docs/report.md defines every number.
// `metric`: the first of the run's task.
std::string report_markdown(const std::string& name, std::int64_t seed, const Metric& metric, const RunHistory& history);

}  // namespace tessera

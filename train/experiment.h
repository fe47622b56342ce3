// The experiment file as structs: one per block, defaults in the members, parsed once and strictly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "admm/config.h"
#include "compress/factorise.h"
#include "compress/prune/config.h"
#include "compress/prune/rigl.h"
#include "compress/shrink.h"
#include "compress/sparsify.h"
#include "core/config/fields.h"
#include "core/config/read.h"
#include "core/device/device.h"
#include "layers/models/model.h"
#include "optim/builtin.h"
#include "optim/ema.h"
#include "optim/power_sgd.h"
#include "optim/schedule.h"
#include "train/config_file.h"
#include "train/data/builtin.h"
#include "train/resolve_device.h"
#include "train/tasks/loss_config.h"

namespace tessera {

// A text that names a folder and stands in a CSV cell.
bool is_plain_name(const std::string& name);
inline constexpr const char* kNameRule = "must be letters, digits, '.', '_' or '-', and not begin with a dot";

struct ThreadsConfig {
  std::int64_t compute = 0;  // 0 = auto: every processor of the process, resolved once and stored
  std::int64_t loader = 2;
  void fields(Fields& f);
};

struct CheckpointConfig {
  Duration every = Duration::epochs(1);
  std::int64_t keep = 3;
  bool best = true;  // pin the checkpoint with the best validation metric
  std::string keep_best = "stage";  // or "run": only that of the newest stage that has one
  bool async = true;  // training goes on while a copy of the state is written

  bool keeps_newest_best_only() const { return keep_best == "run"; }
  void fields(Fields& f);
};

struct LatencyConfig {
  std::vector<std::int64_t> batch{1, 32};
  std::int64_t repeats = 50;
  void fields(Fields& f);
};

struct ReportConfig {
  LatencyConfig latency;  // of inference
  std::optional<LatencyConfig> decode = {};  // of a new position of the data's sequences; not timed without it
  void fields(Fields& f);
};

// What a training stage may set for itself. Stands at the top level as the default of every stage.
struct TrainingConfig {
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  LossConfig loss;
  std::optional<double> clip_norm;
  std::optional<EmaConfig> ema;
  std::optional<std::int64_t> micro_batch;
  bool recompute = false;
  std::optional<bool> sync_batch_norm;  // false
  std::optional<PowerSgdConfig> power_sgd;
  void fields(Fields& f);
};

// The `distill` block of a stage.
struct DistillConfig {
  std::optional<std::string> from;  // the stage whose network teaches, as it was at that stage's end; the stage before
  double temperature = 4;
  double weight = 0.5;
  void fields(Fields& f);
};

struct StageConfig {
  std::string name;
  std::optional<Duration> train;
  std::optional<FactoriseConfig> factorise;  // with `from`: its inherited members are that admm block's
  std::optional<AdmmConfig> admm;
  std::optional<PruneConfig> prune;
  std::optional<RiglConfig> rigl;
  std::optional<ShrinkConfig> shrink;
  std::optional<SparsifyConfig> sparsify;
  std::optional<DistillConfig> distill;  // with `from`, once the file is read
  TrainingConfig training;  // top-level blocks merged with this stage's
  void fields(Fields& f);
};

struct ExperimentConfig {
  std::int64_t version = 1;
  std::string name;
  std::int64_t seed = 0;
  std::string device = "auto";
  std::string precision = "f32";
  bool deterministic = false;  // no choice by a clock: the first algorithm of each op
  ThreadsConfig threads;
  DataConfig data;
  ModelConfig model;
  TrainingConfig training;
  std::vector<StageConfig> stages;
  CheckpointConfig checkpoint;
  ReportConfig report;
  std::int64_t log_every = 50;
  void fields(Fields& f);
};

// The keys of TrainingConfig, which stages override.
std::span<const std::string_view> training_keys();

// Batches of one epoch over `samples` training samples.
std::int64_t steps_per_epoch(const DataConfig& data, std::int64_t samples);
// The length of a stage that trains.
StageLength length_of(const StageConfig& stage, std::int64_t steps_per_epoch);

struct Experiment {
  ExperimentConfig config;
  Value resolved;  // every key written out, stages merged; loads again to an equal config
  Marks marks;
};

// Reads, merges, overrides and checks. Throws ConfigError with every problem, each as file:line:col: path: message. A file's
// device must be usable; parse_experiment also takes what was stored elsewhere, and only checks that the name is one.
Experiment load_experiment(const std::string& path, std::span<const std::string> overrides = {});
Experiment parse_experiment(Value root);
// The same for callers that want each problem by itself: nothing when there are any, which are appended in the order of the file.
std::optional<Experiment> load_experiment(const std::string& path, std::span<const std::string> overrides,
                                          std::vector<ConfigProblem>& problems);

}  // namespace tessera

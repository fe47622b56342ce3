// The computing half of a run: the model, where it stands, and the trainer and loader of the stage under way. Writes no file, so
// that the same steps can be run a second time beside a run's folder.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/module.h"
#include "train/checkpoint/store.h"
#include "train/data/builtin.h"
#include "train/data/loader.h"
#include "train/experiment.h"
#include "train/run/evaluate.h"
#include "train/run/position.h"
#include "train/run/run_inputs.h"
#include "train/run/stage_passes.h"
#include "train/run/stage_trainer.h"
#include "train/run/teachers.h"
#include "train/tasks/builtin.h"

namespace tessera {

// Settles what a run keeps from its start on. The device and the compute threads: a resume on another machine is then told, and
// one on another number of processors has the same bytes. The batch that decides which layers stay compressed: it must not
// follow the report block, which a resume may change. Throws ConfigError when the device cannot be used.
void settle_for_run(ExperimentConfig& config);

// Throws ConfigError where the device is not there, or cannot do what a stage asks for.
void refuse_on_device(const ExperimentConfig& config);

Value sizes_of(const Shape& shape);  // a list, as manifests and messages between ranks have it

// Hooks around the timings of a stage's passes. `before` is told the pass's key and what is about to be timed, and may throw:
// what was timed until then is recorded. `after` is called when it was timed, not where the timing throws.
struct TimingHooks {
  std::function<void(const std::string& key, const std::string& what)> before = {};
  std::function<void()> after = {};
  ShareTimings share = {};  // see VetoOptions
};

class RunState {
 public:
  // `ranks`, which outlive the state, take its steps together, each on its share of the batches; all else a rank does for itself.
  // Throws ConfigError where batches have no equal shares.
  RunState(ExperimentConfig config, DataSplits data, Communicator& ranks = one_process());

  void start(InitialModel initial);  // at the first stage's beginning
  // Throws IoError when the training data is not what the checkpoint's run had.
  void load(const Checkpoint& checkpoint);

  const ExperimentConfig& config() const noexcept { return config_; }
  const DataSplits& data() const noexcept { return data_; }
  const Value& data_keys() const noexcept { return data_keys_; }  // manifest_keys()
  const Task& task() const { return task_of(config_.data); }
  Device device() const noexcept { return device_; }
  Position& position() noexcept { return position_; }
  const Position& position() const noexcept { return position_; }
  Module& model() const noexcept { return *model_; }
  const StageResults& results() const noexcept { return results_; }
  const Teachers& teachers() const noexcept { return teachers_; }
  // The hooks of the stage's own blocks, without those of its training.
  std::vector<MakeHook> hooks_of_stage() const;
  void forget_training();  // the loader and the trainer, whose state is not needed any more
  StageTrainer* trainer() const noexcept { return trainer_.get(); }  // null outside begin_training .. next_stage

  const StageConfig& stage() const { return config_.stages[static_cast<std::size_t>(position_.stage)]; }
  bool at_last_stage() const { return position_.stage + 1 == static_cast<std::int64_t>(config_.stages.size()); }
  bool finished() const { return position_.stage_done && at_last_stage(); }
  std::int64_t steps_per_epoch() const noexcept { return steps_per_epoch_; }
  std::int64_t stage_steps() const;  // throws ConfigError when the stage's length is less than one step

  // Runs the stage's passes unless they have run, and gives their reports.
  std::vector<PassReport> prepare_stage(const TimingHooks& hooks = {}, std::optional<std::int64_t> timings = {});
  void begin_training();  // from where the position says
  void step();  // one step of training, and what hooks do after it
  // Loss and metrics on the validation split, which has at least one sample, with the weights that hooks want evaluated. All
  // ranks take part (evaluate_together() has `own_done`). Throws NumericError as the trainer's check_finite() does.
  Evaluation evaluate_val(const std::function<void()>& own_done);
  void end_stage();
  void next_stage();

  // What a checkpoint holds: tensors by part, on the host, and the manifest's keys that rebuild the rest. On the CPU they are the
  // run's own tensors, copies where it computes on a GPU.
  std::map<std::string, State> parts() const;
  Value manifest() const;

 private:
  void load_parts(const Checkpoint& checkpoint);
  LoaderOptions loader_options() const;
  std::unique_ptr<Loader> training_loader() const;  // of whole batches
  std::unique_ptr<Loader> loader_of_rank(int threads) const;  // of this rank's shares of them
  // Batches of epochs that the stage never trains on, so that passes and hooks take no batch from its training. They are read
  // when they are asked for.
  TrainingBatches batches_for_passes() const;
  ReadBatches batches_for_hooks() const;
  std::int64_t epoch_of_passes() const;  // the first of these
  void renew_statistics_of_averages();  // for the model's present weights, with batches_for_hooks()
  Batch next_batch();

  Communicator& ranks_;
  ExperimentConfig config_;
  DataSplits data_;
  Value data_keys_;  // manifest_keys(), whose fingerprints read all of the data
  Device device_;
  std::unique_ptr<Module> model_;  // on device_
  Teachers teachers_;  // on device_
  std::unique_ptr<StageTrainer> trainer_;
  std::unique_ptr<Loader> loader_;
  std::map<std::string, State> restored_;  // trainer parts of a checkpoint, until their stage's trainer exists
  Position position_;
  StageResults results_;
  std::int64_t steps_per_epoch_;
};

}  // namespace tessera

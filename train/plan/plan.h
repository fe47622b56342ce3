// What an experiment will do and need, found without training: the content of `tessera plan`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/layer_report.h"
#include "compress/pass.h"
#include "train/experiment.h"
#include "train/plan/admm_plan.h"
#include "train/plan/disk_plan.h"
#include "train/run/memory_plan.h"

namespace tessera {

// Learning rates of a stage, by the function that training calls.
struct SchedulePlan {
  std::string name;  // of the schedule
  std::int64_t steps = 0;  // of the stage
  double epochs = 0;
  double first_lr = 0;
  double peak_lr = 0;
  double last_lr = 0;
  std::int64_t warmup_steps = 0;  // the rate rises during these; 0 when the first step has the peak

  void fields(Fields& f);
};
SchedulePlan plan_schedule(const TrainingConfig& training, std::int64_t steps, std::int64_t steps_per_epoch);

// Layers whose ranks were asked for in the same words, and the fractions of them that the pass keeps.
struct RanksPlan {
  std::string asked;  // "macs 0.4 per matched"
  std::int64_t layers = 0;
  std::int64_t changed = 0;  // that do not stay dense
  double parameters_kept = 1;
  double macs_kept = 1;
  void fields(Fields& f);
};

// A pass of a stage, run on the initial weights; a run chooses ranks from the trained ones.
struct PassPlan {
  PassReport report;
  std::vector<RanksPlan> ranks;
  RuleComparison rules;  // what other rules would choose
  void fields(Fields& f);
};

struct StagePlan {
  std::string name;
  std::vector<PassPlan> passes;
  // Layers that are not faster go back to dense. `layers` and `cost` assume that none goes back. Memory and disk assume that
  // none or all do, whichever needs more.
  bool only_faster = false;
  Trace layers;  // after the passes
  Cost cost;
  std::optional<SchedulePlan> schedule;  // empty: the stage does not train
  std::optional<AdmmPlan> admm;  // empty without an admm block
  std::optional<MemoryPlan> memory;
  DiskPlan disk;

  void fields(Fields& f);
};

struct Plan {
  std::string data;
  std::int64_t train_samples = 0, val_samples = 0, test_samples = 0;
  std::int64_t batch = 0, steps_per_epoch = 0;
  std::string device, precision;
  Shape input;  // [1, h, w, c]
  Trace layers;  // before the first stage
  Cost cost;
  std::vector<StagePlan> stages;

  std::int64_t memory_peak() const;  // of the stage that needs most; 0 when none trains
  std::int64_t disk_bytes() const;  // checkpoints at the end of the run, at most, and a best one that is replaced
  void fields(Fields& f);
};

// Checks the experiment first (train/plan/check.h) and throws what that throws. Sets the number of compute threads. `choices`:
// those of a run, whose memory is planned (train/run/memory_plan.h).
Plan make_plan(const Experiment& experiment, const DecisionMap* choices = nullptr);

// For another program: the keys that docs/json.md lists.
Value to_value(const Plan& plan);
Value to_value(const Trace& trace);

}  // namespace tessera

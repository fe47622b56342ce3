#include "train/plan/plan.h"

#include <algorithm>

#include "core/support/error.h"
#include "train/plan/check.h"
#include "train/run/compute_dtype.h"
#include "train/run/environment.h"
#include "train/run/model_state.h"
#include "train/run/stage_passes.h"

namespace tessera {
namespace {

Trace trace_of(const Module& model, const Shape& input) {
  Trace trace;
  model.output_shape(input, &trace);
  return trace;
}

double fraction(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 1.0;
}

// One plan per request for ranks, in the order in which the rows first ask for it.
std::vector<RanksPlan> plan_ranks(const PassReport& report) {
  std::vector<RanksPlan> plans;
  std::vector<Cost> before, after;
  for (const LayerReport& row : report.layers) {
    const auto same =
        std::find_if(plans.begin(), plans.end(), [&](const RanksPlan& plan) { return plan.asked == row.ranks_asked; });
    const auto i = static_cast<std::size_t>(same - plans.begin());
    if (same == plans.end()) {
      plans.emplace_back().asked = row.ranks_asked;
      before.emplace_back();
      after.emplace_back();
    }
    ++plans[i].layers;
    plans[i].changed += row.stays_dense() ? 0 : 1;
    before[i].parameters += row.parameters_before;
    before[i].macs += row.macs_before;
    after[i].parameters += row.parameters_after;
    after[i].macs += row.macs_after;
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    plans[i].parameters_kept = fraction(after[i].parameters, before[i].parameters);
    plans[i].macs_kept = fraction(after[i].macs, before[i].macs);
  }
  return plans;
}

// The first step after which the rate stops rising. Every schedule rises strictly in its warm-up and never again.
std::int64_t end_of_rise(const TrainingConfig& training, const StageLength& length) {
  const double base = training.optimizer.lr();
  const auto rises = [&](std::int64_t step) {
    return scheduled_lr(training.schedule, base, step + 1, length) > scheduled_lr(training.schedule, base, step, length);
  };
  std::int64_t low = 0;
  std::int64_t high = length.steps - 1;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (rises(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

class Planner {
 public:
  Planner(const ExperimentConfig& config, RunInputs inputs, const DecisionMap* choices)
      : config_(config),
        choices_(choices),
        data_(std::move(inputs.data)),
        data_keys_(manifest_keys(data_)),
        model_(std::move(inputs.initial.model)) {
    plan_.input = sample_shape(data_);
    plan_.data = config.data.name();
    plan_.train_samples = data_.train.size();
    plan_.val_samples = data_.val.size();
    plan_.test_samples = data_.test.size();
    plan_.batch = config.data.batch;
    plan_.steps_per_epoch = steps_per_epoch(config.data, data_.train.size());
    plan_.device = resolve_device(config.device).name();
    plan_.precision = config.precision;
    plan_.layers = trace_of(*model_, plan_.input);
    plan_.cost = total_cost(*model_, plan_.input);
  }

  Plan run() {
    for (std::size_t i = 0; i < config_.stages.size(); ++i) {
      plan_.stages.push_back(plan_stage(i));
      teachers_.stage_over(config_, i, *model_);
      dense_teachers_.stage_over(config_, i, dense_ ? *dense_ : *model_);
      for (Teachers* each : {&teachers_, &dense_teachers_}) each->to_device(resolve_device(config_.device));
    }
    plan_disk();
    return std::move(plan_);
  }

 private:
  StagePlan plan_stage(std::size_t index) {
    const StageConfig& stage = config_.stages[index];
    StagePlan plan;
    plan.name = stage.name;
    for (StagePass& pass : stage_passes(stage, config_.report, results_, Values::zeros)) run(stage, pass, plan);
    plan.layers = trace_of(*model_, plan_.input);
    plan.cost = total_cost(*model_, plan_.input);
    if (stage.train) {
      plan.schedule = plan_schedule(stage.training, stage.train->resolve(plan_.steps_per_epoch, 0), plan_.steps_per_epoch);
      plan.admm = plan_admm(stage, plan_.steps_per_epoch);
      plan.memory = memory_of(*model_, stage, teachers_);
    }
    assume_trained(stage, *model_);
    if (dense_) assume_trained(stage, *dense_);
    RunHistory before = history_;
    plan.disk = plan_checkpoint(*model_, config_, index, results_, teachers_, data_keys_, history_);
    if (dense_) count_dense(index, before, plan);
    dense_teachers_.stage_ends(config_, index);
    return plan;
  }

  void run(const StageConfig& stage, StagePass& pass, StagePlan& plan) {
    plan.only_faster = plan.only_faster || pass.may_leave_dense || (pass.veto && pass.veto->only_faster);
    if (pass.may_leave_dense && !dense_) dense_ = copy_of(*model_);
    if (dense_ && !pass.may_leave_dense && !pass.settles) run_pass(dense_, *pass.pass, plan_.input);
    PassReport report = run_stage_pass(pass, stage, model_, plan_.input, results_);
    history_.of(stage.name).passes.push_back(report);
    std::vector<RanksPlan> ranks = plan_ranks(report);
    plan.passes.push_back({std::move(report), std::move(ranks), pass.pass->compare_rules()});
  }

  // The clock may leave every layer of `keep: faster` dense. The plan takes the larger figures of both cases.
  void count_dense(std::size_t index, RunHistory& history, StagePlan& plan) {
    if (plan.memory) {
      const MemoryPlan memory = memory_of(*dense_, config_.stages[index], dense_teachers_);
      if (memory.peak() > plan.memory->peak()) plan.memory = memory;
    }
    const DiskPlan disk = plan_checkpoint(*dense_, config_, index, results_, dense_teachers_, data_keys_, history);
    if (disk.end_bytes > plan.disk.end_bytes) plan.disk = disk;
  }

  MemoryPlan memory_of(Module& model, const StageConfig& stage, const Teachers& teachers) const {
    const std::vector<MakeHook> hooks =
        stage_hooks(stage, {.results = results_, .teacher = teachers.of(stage), .compute = compute_dtype_of(config_)});
    return plan_memory(model, config_, stage.training, data_, hooks, teachers.bytes(), choices_);
  }

  void plan_disk() {
    std::vector<DiskPlan> disks;
    std::vector<std::int64_t> steps;
    for (const StagePlan& stage : plan_.stages) {
      disks.push_back(stage.disk);
      steps.push_back(stage.schedule ? stage.schedule->steps : 0);
    }
    plan_kept(disks, steps, config_.checkpoint, plan_.steps_per_epoch, plan_.val_samples > 0);
    for (std::size_t i = 0; i < disks.size(); ++i) plan_.stages[i].disk = disks[i];
  }

  const ExperimentConfig& config_;
  const DecisionMap* choices_;  // null if none are given
  DataSplits data_;
  Value data_keys_;
  std::unique_ptr<Module> model_;
  std::unique_ptr<Module> dense_;  // model_ with every layer of `keep: faster` dense; null before the first stage with one
  StageResults results_;
  Teachers teachers_;  // on the device on which steps are tried
  Teachers dense_teachers_;  // the same with every layer of `keep: faster` dense
  RunHistory history_;  // as a checkpoint's manifest would hold it
  Plan plan_;
};

}  // namespace

SchedulePlan plan_schedule(const TrainingConfig& training, std::int64_t steps, std::int64_t steps_per_epoch) {
  const StageLength length{.steps = steps, .steps_per_epoch = steps_per_epoch};
  const auto lr = [&](std::int64_t step) { return scheduled_lr(training.schedule, training.optimizer.lr(), step, length); };
  SchedulePlan plan;
  plan.name = std::visit([](const auto& form) { return std::string(form.kName); }, training.schedule.form);
  plan.steps = steps;
  plan.epochs = static_cast<double>(steps) / static_cast<double>(steps_per_epoch);
  const std::int64_t top = end_of_rise(training, length);
  plan.warmup_steps = top > 0 ? top + 1 : 0;
  plan.first_lr = lr(0);
  plan.last_lr = lr(steps - 1);
  plan.peak_lr = std::max(lr(top), plan.last_lr);  // if the floor is above the base rate, the rate rises to it
  return plan;
}

std::int64_t Plan::memory_peak() const {
  std::int64_t peak = 0;
  for (const StagePlan& stage : stages) {
    if (stage.memory) peak = std::max(peak, stage.memory->peak());
  }
  return peak;
}

std::int64_t Plan::disk_bytes() const {
  std::int64_t bytes = 0;
  for (const StagePlan& stage : stages) bytes += stage.disk.bytes();
  return bytes;
}

Plan make_plan(const Experiment& experiment, const DecisionMap* choices) {
  set_compute_threads(experiment.config.threads.compute);  // the kernels' scratch memory depends on the number of threads
  return Planner(experiment.config, check_experiment(experiment), choices).run();
}

}  // namespace tessera

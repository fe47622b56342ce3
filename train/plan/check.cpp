#include "train/plan/check.h"

#include <algorithm>
#include <functional>

#include "admm/constraint.h"
#include "compress/prune/prune.h"
#include "compress/prune/rigl.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "layers/compressed.h"
#include "layers/decoding.h"
#include "train/config_file.h"
#include "train/plan/check_inputs.h"
#include "train/run/compute_dtype.h"
#include "train/run/model_state.h"
#include "train/run/run_state.h"
#include "train/run/stage_passes.h"
#include "train/run/undecided.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

class Checker {
 public:
  explicit Checker(const Experiment& experiment) : config_(experiment.config), marks_(experiment.marks) {}

  // Runs one check. An Error that it throws becomes a problem at `path`.
  bool attempt(const std::string& path, const std::function<void()>& check) {
    try {
      check();
      return true;
    } catch (const Error& error) {
      add(path, error.what());
      return false;
    }
  }

  void add(const std::string& path, const std::string& message) { problems_.push_back(problem_at(marks_, path, message)); }

  void check_data() {
    attempt("data", [&] {
      data_ = load_data(config_.data, static_cast<std::uint64_t>(config_.seed));
      input_ = sample_shape(*data_);
      steps_per_epoch_ = steps_per_epoch(config_.data, data_->train.size());
    });
    if (!data_) return;
    attempt("data.batch", [&] {
      TESSERA_CHECK(steps_per_epoch_ >= 1, ConfigError, "is ", config_.data.batch, ", but only ", data_->train.size(),
                    " samples are left to train on; lower it, or set data.drop_last: false");
    });
  }

  void check_model() {
    if (!data_) return;
    attempt("model", [&] {
      initial_ = initial_model(real_vfs(), config_, *data_);
      model_ = &initial_.model;
      const Shape output = initial_.model->output_shape(input_);
      task_of(config_.data).check_output(output, *data_->train.dataset);
      task_of(config_.data).check_network(*initial_.model);
      check_inputs(*initial_.model, *data_->train.dataset);
    });
  }

  void check_report() {
    if (!model_ || !config_.report.decode) return;
    const std::string reason = why_not_decode(**model_);
    if (!reason.empty()) add("report.decode", str("is of networks that write text; ", reason));
  }

  void check_stage(std::size_t index) {
    const StageConfig& stage = config_.stages[index];
    const std::string path = str("stages[", index, ']');
    if (stage.training.power_sgd) {
      attempt(path + ".power_sgd", [&] { check_power_sgd(resolve_device(config_.device)); });
    }
    if (stage.train && data_ && steps_per_epoch_ >= 1) {
      attempt(path + ".train", [&] {
        TESSERA_CHECK(stage.train->unit != Duration::Unit::percent, ConfigError, to_string(*stage.train),
                      " is a share of the stage itself; give epochs or steps");
        TESSERA_CHECK(stage.train->resolve(steps_per_epoch_, 0) >= 1, ConfigError, to_string(*stage.train),
                      " is less than one of the ", steps_per_epoch_, " steps of an epoch");
      });
    }
    if (stage.train && stage.admm && data_ && steps_per_epoch_ >= 1) check_updates(path + ".admm", stage);
    if (stage.train && data_ && steps_per_epoch_ >= 1) check_pruning(path, stage);
    if (!model_) return;
    if (stage.training.recompute) check_recompute(path + ".recompute");
    std::vector<StagePass> passes = stage_passes(stage, config_.report, results_, Values::zeros);
    const auto later = config_.stages.begin() + static_cast<std::ptrdiff_t>(index) + 1;
    const bool later_stage = std::any_of(later, config_.stages.end(), asks_of_layers);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const std::string key = str(path, '.', passes[i].key);
      const bool met_later = later_stage || i + 1 < passes.size();
      if (passes[i].veto) check_timing(key, *passes[i].veto);
      attempt(key, [&] { check_pass(key, stage, passes[i], met_later); });
      // A pass that could not settle its layers constrains none, so that later stages are still checked.
      if (passes[i].settles && results_.find(stage.name) == nullptr) results_.stages.push_back({stage.name, {}});
    }
    check_masks(path, stage, later_stage);
  }

  // Whether the stage has blocks that are checked against the layers of the network at the beginning of the stage.
  static bool asks_of_layers(const StageConfig& stage) {
    return has_passes(stage) || stage.prune || stage.rigl || stage.admm || stage.training.recompute;
  }

  // Checks the admm, prune and rigl blocks against the network that the passes have left.
  void check_masks(const std::string& path, const StageConfig& stage, bool met_later) {
    const auto add_all = [&](const char* block, const std::vector<BlockProblem>& problems) {
      for (const BlockProblem& problem : problems) add(str(path, '.', block, '.', problem.key), problem.message);
    };
    std::vector<BlockProblem> admm, prune;
    if (stage.admm && stage.admm->sparsity) sparse_layers(*stage.admm, **model_, admm);
    if (stage.prune) pruned_weights(*stage.prune, **model_, prune);
    if (stage.prune && prune.empty()) prune = mask_problems(*stage.prune, **model_);
    add_all("admm", admm);
    add_all("prune", prune);
    if (stage.rigl) add_all("rigl", rigl_problems(*stage.rigl, **model_));
    if ((stage.prune || stage.rigl) && met_later) leave_masks(stage);
  }

  void check_pruning(const std::string& path, const StageConfig& stage) {
    std::vector<BlockProblem> problems;
    if (stage.prune) problems = schedule_problems(*stage.prune, length_of(stage, steps_per_epoch_));
    if (stage.rigl) problems = rigl_problems(*stage.rigl, length_of(stage, steps_per_epoch_));
    for (const BlockProblem& problem : problems) add(str(path, stage.prune ? ".prune." : ".rigl.", problem.key), problem.message);
  }

  void check_updates(const std::string& path, const StageConfig& stage) {
    const std::int64_t updates = update_count(*stage.admm, length_of(stage, steps_per_epoch_));
    if (updates == 0)
      add(path + ".update", str(to_string(stage.admm->update), " is longer than the stage: no update would be made"));
    if (updates == 1 && stage.admm->rho_end) add(path + ".rho_end", "has no effect in a stage of one update; needs two or more");
  }

  void check_recompute(const std::string& path) {
    for_each_module(**model_, [&](const Module& module) {
      const CompressedLayer* const layer = as_compressed(module);
      const std::string reason = layer != nullptr ? layer->why_not_recompute() : "";
      if (!reason.empty()) add(path, str("layer '", module.path(), "' (", module.kind(), ") ", reason));
    });
  }

  void check_timing(const std::string& path, const VetoOptions& veto) {
    for (const BlockProblem& problem : timing_problems(veto, **model_, input_)) add(str(path, '.', problem.key), problem.message);
  }

  // A later pass receives compressed layers, and only their shapes matter.
  void check_pass(const std::string& path, const StageConfig& stage, StagePass& pass, bool met_later) {
    std::vector<BlockProblem> found = pass.pass->try_prepare(*model_, input_);
    // The veto of an earlier pass may leave layers dense, so the pass must fit the dense network too.
    if (found.empty() && may_be_dense_) found = pass.pass->try_prepare(dense_ ? dense_ : initial_.model, input_);
    for (const BlockProblem& problem : found) add(problem.key.empty() ? path : str(path, '.', problem.key), problem.message);
    if (!found.empty() || !met_later) return;
    may_be_dense_ = may_be_dense_ || pass.may_leave_dense;
    if (!rewritten_) rewritten_ = copy_of(*initial_.model);
    run_stage_pass(pass, stage, rewritten_, input_, results_);
    model_ = &rewritten_;
  }

  void leave_masks(const StageConfig& stage) {
    if (!rewritten_) rewritten_ = copy_of(*initial_.model);
    assume_trained(stage, *rewritten_);
    if (!dense_) dense_ = copy_of(*initial_.model);
    assume_trained(stage, *dense_);
    model_ = &rewritten_;
  }

  void check_all(const DecisionMap* given) {
    if (given != nullptr) {
      for (const BlockProblem& problem : undecided_choices(config_, *given)) add(problem.key, problem.message);
    }
    check_data();
    check_model();
    check_report();
    for (std::size_t i = 0; i < config_.stages.size(); ++i) check_stage(i);
    std::ranges::stable_sort(problems_, {},
                             [](const ConfigProblem& problem) { return std::pair(problem.mark.line, problem.mark.column); });
  }
  const std::vector<ConfigProblem>& problems() const { return problems_; }
  RunInputs take_inputs() { return {std::move(*data_), std::move(initial_)}; }

 private:
  const ExperimentConfig& config_;
  const Marks& marks_;
  std::vector<ConfigProblem> problems_;
  std::optional<DataSplits> data_;
  Shape input_;
  std::int64_t steps_per_epoch_ = 0;
  InitialModel initial_;  // as a run starts with it
  std::unique_ptr<Module> rewritten_;  // a copy with the passes and masks of stages so far; null before the first
  std::unique_ptr<Module> dense_;  // the initial model with the masks of stages that prune; null before the first such stage
  std::unique_ptr<Module>* model_ = nullptr;  // what the stage starts from: initial_.model or rewritten_; null if it is not built
  StageResults results_;
  bool may_be_dense_ = false;  // a clock may have left every layer of `keep: faster` dense, so a stage may start dense
};

}  // namespace

std::optional<RunInputs> check_experiment(const Experiment& experiment, std::vector<ConfigProblem>& problems,
                                          const DecisionMap* given) {
  Checker checker(experiment);
  checker.check_all(given);
  problems.insert(problems.end(), checker.problems().begin(), checker.problems().end());
  if (!checker.problems().empty()) return std::nullopt;
  return checker.take_inputs();
}

RunInputs check_experiment(const Experiment& experiment, const DecisionMap* given) {
  std::vector<ConfigProblem> problems;
  std::optional<RunInputs> inputs = check_experiment(experiment, problems, given);
  if (!inputs) throw_config_error(problems);
  return std::move(*inputs);
}

}  // namespace tessera

#include "train/run/fork_pruning.h"

#include <algorithm>
#include <string>

#include "compress/prune/prune.h"
#include "core/support/error.h"
#include "train/experiment.h"
#include "train/run/config_change.h"
#include "train/run/saved_model.h"

namespace tessera {
namespace {

// What is wrong with the block if a fork continues from a checkpoint after `done` steps of the stage.
std::vector<BlockProblem> problems_ahead(const PruneConfig& prune, const StageLength& length, Module& model, std::int64_t done) {
  std::vector<BlockProblem> problems = schedule_problems(prune, length);
  if (problems.empty()) problems = mask_problems(prune, model);
  if (!problems.empty()) return problems;
  const std::int64_t last = pruning_steps(prune.sparsity, length).back();
  if (last > done) return {};
  return {{prune.sparsity.schedule == "one_shot" ? "sparsity.begin" : "sparsity.end",
           str("is step ", last, " of the stage; the fork is after step ", done, ", so the target would not be met")}};
}

}  // namespace

std::int64_t EpochLength::of(const ExperimentConfig& config) {
  if (!steps_) {
    const DataSplits data = load_data(config.data, static_cast<std::uint64_t>(config.seed));
    steps_ = steps_per_epoch(config.data, data.train.size());
  }
  return *steps_;
}

void check_pruning_of_fork(Vfs& vfs, const SavedPoint& point, const Value& before, const Value& after, EpochLength& epoch) {
  const Position& position = point.position;
  const std::string block = str("stages[", position.stage, "].prune.");
  const std::vector<std::string> keys = changed_keys(before, after);
  const auto changes = [&](const std::string& key) { return key.starts_with(block + "sparsity"); };
  if (position.stage_done || std::ranges::none_of(keys, changes)) return;
  const ExperimentConfig config = parse_experiment(after).config;
  const StageConfig& stage = config.stages.at(static_cast<std::size_t>(position.stage));
  if (!stage.prune || stage.prune->sr_ste) return;
  const Checkpoint checkpoint = load_point(vfs, point);
  if (position.stage_step == 0 && !checkpoint.parts.contains("trainer")) return;  // the stage checks itself when it begins
  const std::unique_ptr<Module> model = saved_model(checkpoint);
  const StageLength length = length_of(stage, epoch.of(config));
  for (const BlockProblem& problem : problems_ahead(*stage.prune, length, *model, position.stage_step)) {
    throw ConfigError(str("fork: ", block, problem.key, ": ", problem.message));
  }
}

}  // namespace tessera

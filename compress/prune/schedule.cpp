#include "compress/prune/schedule.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

constexpr Duration kEnd = Duration::percent(75);
constexpr Duration kEvery = Duration::steps(100);

std::int64_t in_steps(const Duration& duration, const StageLength& stage) {
  return duration.resolve(stage.steps_per_epoch, stage.steps);
}

}  // namespace

std::vector<std::int64_t> pruning_steps(const SparsityConfig& config, const StageLength& stage) {
  const std::int64_t begin = in_steps(config.begin, stage);
  if (config.schedule == "one_shot") return {begin};
  const std::int64_t end = in_steps(config.end.value_or(kEnd), stage);
  const std::int64_t every = std::max<std::int64_t>(1, in_steps(config.every.value_or(kEvery), stage));
  std::vector<std::int64_t> steps;
  for (std::int64_t step = begin; step < end; step += every) steps.push_back(step);
  if (begin <= end) steps.push_back(end);
  return steps;
}

std::int64_t freeze_step(const SrSteConfig& config, const StageLength& stage) {
  return std::max<std::int64_t>(1, in_steps(config.freeze, stage));
}

double sparsity_after(const SparsityConfig& config, const StageLength& stage, std::int64_t step, const SparsityRange& range) {
  const auto& [initial, target] = range;
  if (initial >= target) return initial;  // pruned elements stay pruned
  const std::vector<std::int64_t> steps = pruning_steps(config, stage);
  if (step >= steps.back()) return target;
  if (config.schedule == "iterative") {
    const auto done = std::ranges::upper_bound(steps, step) - steps.begin();
    const double share = static_cast<double>(done) / static_cast<double>(steps.size());
    return 1 - (1 - initial) * std::pow((1 - target) / (1 - initial), share);
  }
  const double left = static_cast<double>(steps.back() - step) / static_cast<double>(steps.back() - steps.front());
  return target + (initial - target) * left * left * left;
}

}  // namespace tessera

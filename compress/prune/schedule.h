// When a stage prunes, and how far.
#pragma once

#include <cstdint>
#include <vector>

#include "compress/prune/config.h"
#include "core/config/duration.h"

namespace tessera {

// Steps of the stage after which it prunes, ascending: begin, then every `every`, and `end` in any case; 0 is before the first
// step. One_shot has begin alone.
std::vector<std::int64_t> pruning_steps(const SparsityConfig& config, const StageLength& stage);

// Steps of the stage after which sr_ste freezes its mask; at least 1.
std::int64_t freeze_step(const SrSteConfig& config, const StageLength& stage);

// How far to go: from `initial` at the stage's begin to `target`.
struct SparsityRange {
  double initial = 0, target = 0;
};

// Sparsity after the pruning at `step`; at the last pruning the target exactly, or `initial` where that is more.
//   cubic:     s = target + (initial - target) (1 - t)^3, t the share of the way from begin to end (Zhu and Gupta 2017)
//   iterative: 1 - s = (1 - initial) ((1 - target) / (1 - initial))^(k / n) at the k-th of n prunings
double sparsity_after(const SparsityConfig& config, const StageLength& stage, std::int64_t step, const SparsityRange& range);

}  // namespace tessera

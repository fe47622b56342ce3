// How the loss scale moves, the same on both devices.
#pragma once

#include "core/support/host_device.h"
#include "optim/loss_scale.h"

namespace tessera {

TESSERA_HD inline void next_loss_scale(StepStateData& state) {
  if (state.skip != 0) {
    const double half = state.loss_scale * 0.5;
    state.loss_scale = half < kSmallestLossScale ? kSmallestLossScale : half;
    state.good_steps = 0;
  } else if (++state.good_steps >= kLossScaleGrowthInterval) {
    const double twice = state.loss_scale * 2;
    state.loss_scale = twice > kLargestLossScale ? kLargestLossScale : twice;
    state.good_steps = 0;
  }
}

}  // namespace tessera

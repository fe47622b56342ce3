// Dynamic loss scaling (Micikevicius et al., ICLR 2018): f16 gradients below 2^-24 would vanish, so the loss is multiplied by a
// scale and the parameters' gradients are divided by it. The scale halves when it made a gradient overflow, and that step is
// skipped; it doubles after many steps without. All of it lives in the step state on the device: no step waits for it.
//
//   scaled_by_loss_scale(loss, state) -> backward() -> unscale_gradients(parameters, state) -> clipping, Optimizer::step(state)
//   -> update_loss_scale(state)
#pragma once

#include <span>
#include <vector>

#include "core/autograd/var.h"
#include "core/device/step_state.h"
#include "core/nn/module.h"

namespace tessera {

inline constexpr double kInitialLossScale = 0x1p16;
inline constexpr double kLargestLossScale = 0x1p24;
inline constexpr double kSmallestLossScale = 0x1p-24;
inline constexpr std::int64_t kLossScaleGrowthInterval = 2000;  // steps in a row without a NaN or Inf

// loss * loss_scale; the gradient is multiplied by the same scale. Saves nothing. Throws DeviceError when the state lies
// elsewhere.
Var scaled_by_loss_scale(const Var& loss, const StepState& step_state);

// Divides every trainable parameter's gradient by the scale, once per step, after all of its micro-batches. Sets the state's
// `skip` to 1 when any held a NaN or Inf, else to 0; optimisers and averages change nothing where it is 1. f32 and f64.
void unscale_gradients(const std::vector<NamedParameter>& parameters, const StepState& step_state);

// skip: halves the scale and starts counting anew. Otherwise one more good step; after kLossScaleGrowthInterval the scale
// doubles. Leaves `skip` as it is. The scale stays within its two bounds.
void update_loss_scale(const StepState& step_state);

// Kernels. unscale: contiguous tensors, in place.
namespace cpu {
void multiply_by_loss_scale(const Tensor& x, const Tensor& step_state, const Tensor& y);
void unscale(std::span<const Tensor> gradients, const Tensor& step_state);
void update_scale(const Tensor& step_state);
}  // namespace cpu
namespace cuda {
void multiply_by_loss_scale(const Tensor& x, const Tensor& step_state, const Tensor& y);
void unscale(std::span<const Tensor> gradients, const Tensor& step_state);
void update_scale(const Tensor& step_state);
}  // namespace cuda

}  // namespace tessera

// The values that change at every step. Kernels read them from one small tensor on the device, never from host arguments,
// so that a captured step can be replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/tensor.h"

namespace tessera {

inline constexpr std::size_t kStepSlots = 8;

struct StepStateData {
  // Published by the host, between steps.
  std::int64_t step = 0;        // global optimiser step, from 0, over all stages
  std::int64_t micro_step = 0;  // index of the micro-batch within the step
  double lr = 0;
  double slots[kStepSlots] = {};  // of hooks, which take theirs by name (core/nn/hook.h)
  // Kept by kernels from step to step; publishing leaves them alone. See optim/loss_scale.h.
  double loss_scale = 1;
  std::int64_t good_steps = 0;  // in a row, since the scale last changed
  std::int64_t skip = 0;        // not 0: this step's gradients held a NaN or Inf, and updates change nothing
};
static_assert(std::is_trivially_copyable_v<StepStateData>);
inline constexpr std::size_t kPublishedBytes = offsetof(StepStateData, loss_scale);

class StepState {
 public:
  explicit StepState(Device device = {});

  // Publishes the values to the device, except those that kernels keep. Called between steps, once at each step's beginning.
  void set(const StepStateData& data);
  // Part of a step's work, which a graph may record: the index is the same in every replay.
  void set_micro_step(std::int64_t micro_step);
  const StepStateData& host() const noexcept { return data_; }  // as last published

  // What kernels keep, for checkpoints: load() sets it; read() waits for the device.
  void load(double loss_scale, std::int64_t good_steps);
  StepStateData read() const;

  const Tensor& tensor() const noexcept { return tensor_; }

 private:
  StepStateData data_;
  Tensor tensor_;
};

// The values as a kernel on the tensor's device sees them.
inline const StepStateData& step_state_data(const Tensor& tensor) { return *static_cast<const StepStateData*>(tensor.raw()); }

// publish_step() writes the first `bytes` of `data` into the tensor, publish_micro_step() the index alone.
namespace cpu {
void publish_step(const StepStateData& data, std::size_t bytes, const Tensor& tensor);
void publish_micro_step(std::int64_t micro_step, const Tensor& tensor);
}  // namespace cpu
namespace cuda {
void publish_step(const StepStateData& data, std::size_t bytes, const Tensor& tensor);
void publish_micro_step(std::int64_t micro_step, const Tensor& tensor);
}  // namespace cuda

}  // namespace tessera

// The values that change at every step. Kernels read them from one small tensor on the device, never from host arguments,
// so that a captured step can be replayed.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/tensor.h"

namespace tessera {

struct StepStateData {
  std::int64_t step = 0;        // global optimiser step, from 0, over all stages
  std::int64_t micro_step = 0;  // index of the micro-batch within the step
  double lr = 0;
  double loss_scale = 1;
  double ema_decay = 0;
  double rho = 0;
};
static_assert(std::is_trivially_copyable_v<StepStateData>);

class StepState {
 public:
  explicit StepState(Device device = {}) : tensor_(Tensor::zeros({sizeof(StepStateData)}, DType::u8, device)) { set({}); }

  // Publishes the values to the device; called once per step, between steps.
  void set(const StepStateData& data) {
    data_ = data;
    require_cpu(tensor_.device(), "step_state");
    *static_cast<StepStateData*>(tensor_.raw()) = data;
  }
  const StepStateData& host() const noexcept { return data_; }
  const Tensor& tensor() const noexcept { return tensor_; }

 private:
  StepStateData data_;
  Tensor tensor_;
};

// The values as a kernel on the tensor's device sees them.
inline const StepStateData& step_state_data(const Tensor& tensor) { return *static_cast<const StepStateData*>(tensor.raw()); }

}  // namespace tessera

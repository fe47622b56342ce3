#include "core/device/step_state.h"

#include <cstring>

#include "core/device/dispatch.h"

namespace tessera {
namespace cpu {

void publish_step(const StepStateData& data, std::size_t bytes, const Tensor& tensor) {
  std::memcpy(tensor.raw(), &data, bytes);
}

void publish_micro_step(std::int64_t micro_step, const Tensor& tensor) {
  static_cast<StepStateData*>(tensor.raw())->micro_step = micro_step;
}

}  // namespace cpu

StepState::StepState(Device device) : tensor_(Tensor::empty({sizeof(StepStateData)}, DType::u8, device)) {
  TESSERA_BACKEND(device, publish_step, data_, sizeof(StepStateData), tensor_);
}

void StepState::set(const StepStateData& data) {
  data_ = data;
  TESSERA_BACKEND(tensor_.device(), publish_step, data_, kPublishedBytes, tensor_);
}

void StepState::set_micro_step(std::int64_t micro_step) {
  data_.micro_step = micro_step;
  TESSERA_BACKEND(tensor_.device(), publish_micro_step, micro_step, tensor_);
}

void StepState::load(double loss_scale, std::int64_t good_steps) {
  data_.loss_scale = loss_scale;
  data_.good_steps = good_steps;
  data_.skip = 0;
  TESSERA_BACKEND(tensor_.device(), publish_step, data_, sizeof(StepStateData), tensor_);
}

StepStateData StepState::read() const {
  const Tensor host = tensor_.to(Device::cpu());
  return step_state_data(host);
}

}  // namespace tessera

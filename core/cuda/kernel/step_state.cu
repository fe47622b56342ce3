#include "core/cuda/kernel/launch.cuh"
#include "core/device/device_work.h"
#include "core/device/step_state.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

// The values are arguments of the kernel, because a copy from pageable memory could make the host wait.
__global__ void publish_step_kernel(StepStateData data, bool published_alone, StepStateData* state) {
  if (published_alone) {
    data.loss_scale = state->loss_scale;
    data.good_steps = state->good_steps;
    data.skip = state->skip;
  }
  *state = data;
}

__global__ void publish_micro_step_kernel(std::int64_t micro_step, StepStateData* state) { state->micro_step = micro_step; }

}  // namespace

void publish_step(const StepStateData& data, std::size_t bytes, const Tensor& tensor) {
  TESSERA_CHECK(!recording_graph(), InternalError, "publish_step: on ", tensor.device(), " while a graph is recorded");
  auto* const state = static_cast<StepStateData*>(tensor.raw());
  launch("publish_step", tensor.device(), {dim3(1), dim3(1)}, publish_step_kernel, data, bytes == kPublishedBytes, state);
}

void publish_micro_step(std::int64_t micro_step, const Tensor& tensor) {
  auto* const state = static_cast<StepStateData*>(tensor.raw());
  launch("publish_micro_step", tensor.device(), {dim3(1), dim3(1)}, publish_micro_step_kernel, micro_step, state);
}

}  // namespace tessera::cuda

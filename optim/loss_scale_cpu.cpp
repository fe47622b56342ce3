#include <atomic>
#include <cmath>

#include "core/cpu/map.h"
#include "core/cpu/parallel_tensors.h"
#include "core/ops/arithmetic_math.h"
#include "optim/loss_scale_math.h"

namespace tessera::cpu {
namespace {

StepStateData& writable(const Tensor& step_state) { return *static_cast<StepStateData*>(step_state.raw()); }

// Multiplies the values by `factor`. Returns whether all were finite before.
template <class T>
bool scale_range(T* values, T factor, std::int64_t begin, std::int64_t end) {
  bool finite = true;
  for (std::int64_t i = begin; i < end; ++i) {
    finite = finite && std::isfinite(values[i]);
    values[i] *= factor;
  }
  return finite;
}

}  // namespace

void multiply_by_loss_scale(const Tensor& x, const Tensor& step_state, const Tensor& y) {
  map("loss_scale", Affine{step_state_data(step_state).loss_scale, 0.0}, y, x);
}

void unscale(std::span<const Tensor> gradients, const Tensor& step_state) {
  const double factor = 1 / step_state_data(step_state).loss_scale;
  const auto itself = [](const Tensor& tensor) -> const Tensor& { return tensor; };
  std::atomic<bool> finite = true;
  parallel_tensors(gradients, kGrain, itself, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    dispatch_real(gradients[i].dtype(), "unscale_gradients", [&]<class T>() {
      if (!scale_range(gradients[i].data<T>(), static_cast<T>(factor), begin, end)) finite = false;
    });
  });
  writable(step_state).skip = finite ? 0 : 1;
}

void update_scale(const Tensor& step_state) { next_loss_scale(writable(step_state)); }

}  // namespace tessera::cpu

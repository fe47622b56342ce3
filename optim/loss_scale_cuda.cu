#include "core/cuda/kernel/map.cuh"
#include "core/cuda/kernel/multi_tensor.cuh"
#include "core/ops/operands.h"
#include "optim/loss_scale_math.h"

namespace tessera::cuda {
namespace {

struct TimesLossScale {
  const StepStateData* state;
  template <class T>
  __device__ T operator()(T x) const { return x * static_cast<T>(state->loss_scale); }
};

template <class T>
struct UnscaleEntry {
  T* values;
  std::int64_t count;
  bool packs;
};

__global__ void clear_skip_kernel(StepStateData* state) { state->skip = 0; }

__global__ void update_scale_kernel(StepStateData* state) { next_loss_scale(*state); }

// Every thread that finds a NaN or Inf writes the same value 1, so the race is harmless.
template <class T>
__global__ void __launch_bounds__(kManyThreads)
    unscale_kernel(const __grid_constant__ Many<UnscaleEntry<T>> many, StepStateData* state) {
  ThreadShare share;
  const UnscaleEntry<T>& entry = find_entry(many, share);
  const T factor = static_cast<T>(1 / state->loss_scale);
  T values[kManyItems];
  load_share<kManyWidth<T>>(entry.values, share, values);
  bool finite = true;
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) {
    finite = finite && isfinite(values[j]);
    values[j] *= factor;
  }
  store_share<kManyWidth<T>>(entry.values, share, values);
  if (!finite) state->skip = 1;
}

StepStateData* writable(const Tensor& step_state) { return static_cast<StepStateData*>(step_state.raw()); }

template <class T>
void unscale_all(std::span<const Tensor> gradients, const Tensor& step_state) {
  std::vector<UnscaleEntry<T>> entries;
  for (const Tensor& gradient : gradients) {
    check_real("unscale_gradients", gradient);
    if (gradient.dtype() != dtype_of<T>) continue;
    entries.push_back({gradient.data<T>(), gradient.numel(), takes_packs<T>({gradient.raw()})});
  }
  for_each_many(std::span<const UnscaleEntry<T>>(entries), [&](const Many<UnscaleEntry<T>>& many, unsigned blocks) {
    launch("unscale_gradients", step_state.device(), {dim3(blocks), dim3(kManyThreads)}, unscale_kernel<T>, many,
           writable(step_state));
  });
}

}  // namespace

void multiply_by_loss_scale(const Tensor& x, const Tensor& step_state, const Tensor& y) {
  map("loss_scale", TimesLossScale{writable(step_state)}, y, x);
}

void unscale(std::span<const Tensor> gradients, const Tensor& step_state) {
  launch("unscale_gradients", step_state.device(), {dim3(1), dim3(1)}, clear_skip_kernel, writable(step_state));
  unscale_all<float>(gradients, step_state);
  unscale_all<double>(gradients, step_state);
}

void update_scale(const Tensor& step_state) {
  launch("update_loss_scale", step_state.device(), {dim3(1), dim3(1)}, update_scale_kernel, writable(step_state));
}

}  // namespace tessera::cuda

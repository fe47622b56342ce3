#include "compress/prune/sr_ste.h"
#include "compress/prune/sr_ste_math.h"
#include "core/cuda/kernel/launch.cuh"
#include "core/dtype.h"

namespace tessera::cuda {
namespace {

template <class T>
__global__ void hide_kernel(T* weight, T* dense, std::int64_t groups, std::int64_t n, std::int64_t m) {
  for (std::int64_t group = first_item(); group < groups; group += item_stride()) {
    T* const hidden = weight + group * m;
    T* const whole = dense + group * m;
    for (std::int64_t k = 0; k < m; ++k) whole[k] = hidden[k];
    for (std::int64_t k = 0; k < m; ++k) hidden[k] = among_largest(whole, n, m, k) ? whole[k] : T(0);
  }
}

template <class T>
__global__ void pull_kernel(T* gradient, T* weight, const T* dense, std::int64_t count, T lambda) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    gradient[i] += lambda * (dense[i] - weight[i]);
    weight[i] = dense[i];
  }
}

template <class T>
__global__ void pull_weights_kernel(T* weight, const T* dense, std::int64_t count, double lambda, const StepStateData* state) {
  const T share = state->skip != 0 ? T(0) : static_cast<T>(state->lr * lambda);
  for (std::int64_t i = first_item(); i < count; i += item_stride()) weight[i] = dense[i] - share * (dense[i] - weight[i]);
}

}  // namespace

void sr_ste_hide(std::span<const SrSteOperands> operands, const NOfM& n_m) {
  for (const SrSteOperands& o : operands) {
    const std::int64_t groups = o.weight.numel() / n_m.m;
    const Device device = o.weight.device();
    dispatch_real(o.weight.dtype(), "sr_ste", [&]<class T>() {
      launch("sr_ste_hide", device, grid_for(groups, device), hide_kernel<T>, o.weight.data<T>(), o.dense.data<T>(), groups,
             n_m.n, n_m.m);
    });
  }
}

void sr_ste_pull(std::span<const SrSteOperands> operands, double lambda) {
  for (const SrSteOperands& o : operands) {
    const Device device = o.weight.device();
    dispatch_real(o.weight.dtype(), "sr_ste", [&]<class T>() {
      launch("sr_ste_pull", device, grid_for(o.weight.numel(), device), pull_kernel<T>, o.gradient.data<T>(), o.weight.data<T>(),
             o.dense.data<T>(), o.weight.numel(), static_cast<T>(lambda));
    });
  }
}

void sr_ste_pull_weights(std::span<const SrSteOperands> operands, const Tensor& step_state, double lambda) {
  const auto* const state = static_cast<const StepStateData*>(step_state.raw());
  for (const SrSteOperands& o : operands) {
    const Device device = o.weight.device();
    dispatch_real(o.weight.dtype(), "sr_ste", [&]<class T>() {
      launch("sr_ste_pull_weights", device, grid_for(o.weight.numel(), device), pull_weights_kernel<T>, o.weight.data<T>(),
             o.dense.data<T>(), o.weight.numel(), lambda, state);
    });
  }
}

}  // namespace tessera::cuda

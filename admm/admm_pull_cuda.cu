#include "admm/admm.h"
#include "core/cuda/kernel/multi_tensor.cuh"
#include "core/device/step_state.h"
#include "core/ops/operands.h"

namespace tessera::cuda {
namespace {

template <class T>
struct PullEntry {
  T* gradient;
  const T* weight;
  const T* z;
  const T* u;
  std::int64_t count;
  bool packs;
};

template <class T>
__global__ void __launch_bounds__(kManyThreads)
    admm_pull_kernel(const __grid_constant__ Many<PullEntry<T>> many, const StepStateData* state, std::size_t slot) {
  constexpr int kWidth = kManyWidth<T>;
  ThreadShare share;
  const PullEntry<T>& entry = find_entry(many, share);
  const T rho = static_cast<T>(state->slots[slot]);
  T gradient[kManyItems], weight[kManyItems], z[kManyItems], u[kManyItems];
  load_share<kWidth>(entry.gradient, share, gradient);
  load_share<kWidth>(entry.weight, share, weight);
  load_share<kWidth>(entry.z, share, z);
  load_share<kWidth>(entry.u, share, u);
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) gradient[j] += rho * (weight[j] - z[j] + u[j]);
  store_share<kWidth>(entry.gradient, share, gradient);
}

template <class T>
void pull(std::span<const AdmmOperands> operands, std::size_t slot, const Tensor& step_state) {
  std::vector<PullEntry<T>> entries;
  for (const AdmmOperands& o : operands) {
    if (o.weight.dtype() != dtype_of<T>) continue;
    PullEntry<T> entry{o.gradient.data<T>(), o.weight.data<T>(), o.z.data<T>(), o.u.data<T>(), o.weight.numel(), false};
    entry.packs = takes_packs<T>({entry.gradient, entry.weight, entry.z, entry.u});
    entries.push_back(entry);
  }
  const auto* const state = static_cast<const StepStateData*>(step_state.raw());
  for_each_many(std::span<const PullEntry<T>>(entries), [&](const Many<PullEntry<T>>& many, unsigned blocks) {
    launch("admm_pull", step_state.device(), {dim3(blocks), dim3(kManyThreads)}, admm_pull_kernel<T>, many, state, slot);
  });
}

}  // namespace

void admm_pull(std::span<const AdmmOperands> operands, std::size_t slot, const Tensor& step_state) {
  for (const AdmmOperands& o : operands) check_real("admm", o.weight);
  pull<float>(operands, slot, step_state);
  pull<double>(operands, slot, step_state);
}

}  // namespace tessera::cuda

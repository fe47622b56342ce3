#include "core/cuda/kernel/multi_tensor.cuh"
#include "core/ops/operands.h"
#include "optim/grad_clip.h"
#include "optim/sgd.h"

namespace tessera::cuda {
namespace {

template <class T>
struct SgdEntry {
  T* weight;
  const T* grad;
  T* momentum;
  const std::uint8_t* mask;
  double weight_decay;
  std::int64_t count;
  bool packs;
};

template <class T, bool kMomentum>
__global__ void __launch_bounds__(kManyThreads)
    sgd_kernel(const __grid_constant__ Many<SgdEntry<T>> many, SgdRule rule, const StepStateData* state) {
  if (state->skip != 0) return;
  constexpr int kWidth = kManyWidth<T>;
  ThreadShare share;
  const SgdEntry<T>& entry = find_entry(many, share);
  const T lr = static_cast<T>(state->lr);
  const T decay = static_cast<T>(entry.weight_decay);
  const T mu = static_cast<T>(rule.momentum);
  T w[kManyItems], g[kManyItems], m[kManyItems];
  std::uint8_t kept[kManyItems];
  load_share<kWidth>(entry.weight, share, w);
  load_share<kWidth>(entry.grad, share, g);
  if constexpr (kMomentum) load_share<kWidth>(entry.momentum, share, m);
  load_mask<kWidth>(entry.mask, share, kept);
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) {
    const T decayed = g[j] + decay * w[j];
    T direction = decayed;
    if constexpr (kMomentum) {
      const T next = mu * m[j] + decayed;
      direction = rule.nesterov ? decayed + mu * next : next;
      m[j] = kept[j] != 0 ? next : T(0);
    }
    w[j] = kept[j] != 0 ? w[j] - lr * direction : T(0);
  }
  if constexpr (kMomentum) store_share<kWidth>(entry.momentum, share, m);
  store_share<kWidth>(entry.weight, share, w);
}

template <class T>
void update(std::span<const SgdOperands> operands, const Tensor& step_state, const SgdRule& rule, bool momentum) {
  std::vector<SgdEntry<T>> entries;
  for (const SgdOperands& o : operands) {
    if (o.weight.dtype() != dtype_of<T> || o.momentum.defined() != momentum) continue;
    SgdEntry<T> entry{o.weight.data<T>(), o.grad.data<T>(), data_or_null<T>(o.momentum), data_or_null<std::uint8_t>(o.mask),
                      o.weight_decay, o.weight.numel(), false};
    entry.packs = takes_packs<T>({entry.weight, entry.grad, entry.momentum}, entry.mask);
    entries.push_back(entry);
  }
  const auto* const state = static_cast<const StepStateData*>(step_state.raw());
  for_each_many(std::span<const SgdEntry<T>>(entries), [&](const Many<SgdEntry<T>>& many, unsigned blocks) {
    const auto kernel = momentum ? sgd_kernel<T, true> : sgd_kernel<T, false>;
    launch("sgd", step_state.device(), {dim3(blocks), dim3(kManyThreads)}, kernel, many, rule, state);
  });
}

}  // namespace

void sgd_update(std::span<const SgdOperands> operands, const Tensor& step_state, const SgdRule& rule, const Tensor& norm) {
  norm_of_gradients(operands, norm);
  for (const SgdOperands& o : operands) check_real("sgd", o.weight);
  for (const bool momentum : {true, false}) {
    update<float>(operands, step_state, rule, momentum);
    update<double>(operands, step_state, rule, momentum);
  }
}

}  // namespace tessera::cuda

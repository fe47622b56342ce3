#include "core/cuda/kernel/multi_tensor.cuh"
#include "core/ops/operands.h"
#include "optim/adamw.h"
#include "optim/grad_clip.h"

namespace tessera::cuda {
namespace {

// Factors that depend on the number of updates of a parameter.
struct Corrections {
  double rate;      // lr / (1 - beta1^t)
  double inv_root;  // 1 / sqrt(1 - beta2^t)
};

template <class T>
struct AdamWEntry {
  T* weight;
  const T* grad;
  T* mean;
  T* square;
  const std::uint8_t* mask;
  std::int64_t* updates;
  Corrections* corrections;
  double weight_decay;
  std::int64_t count;
  bool packs;
};

// Counts the update once per parameter, before the blocks of its elements read the corrections.
template <class T>
__global__ void adamw_count_kernel(const __grid_constant__ Many<AdamWEntry<T>> many, AdamWRule rule, const StepStateData* state) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= many.count || state->skip != 0) return;
  const double t = static_cast<double>(++*many.entries[i].updates);
  *many.entries[i].corrections = {state->lr / (1 - pow(rule.beta1, t)), 1 / sqrt(1 - pow(rule.beta2, t))};
}

template <class T>
__global__ void __launch_bounds__(kManyThreads)
    adamw_kernel(const __grid_constant__ Many<AdamWEntry<T>> many, AdamWRule rule, const StepStateData* state) {
  if (state->skip != 0) return;
  constexpr int kWidth = kManyWidth<T>;
  ThreadShare share;
  const AdamWEntry<T>& entry = find_entry(many, share);
  const Corrections corrections = *entry.corrections;
  const T keep = static_cast<T>(1 - state->lr * entry.weight_decay);
  const T rate = static_cast<T>(corrections.rate);
  const T inv_root = static_cast<T>(corrections.inv_root);
  const T beta1 = static_cast<T>(rule.beta1);
  const T beta2 = static_cast<T>(rule.beta2);
  const T one_minus_beta1 = static_cast<T>(1 - rule.beta1);
  const T one_minus_beta2 = static_cast<T>(1 - rule.beta2);
  T w[kManyItems], g[kManyItems], m[kManyItems], v[kManyItems];
  std::uint8_t kept[kManyItems];
  load_share<kWidth>(entry.weight, share, w);
  load_share<kWidth>(entry.grad, share, g);
  load_share<kWidth>(entry.mean, share, m);
  load_share<kWidth>(entry.square, share, v);
  load_mask<kWidth>(entry.mask, share, kept);
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) {
    const T mean = beta1 * m[j] + one_minus_beta1 * g[j];
    const T square = beta2 * v[j] + one_minus_beta2 * g[j] * g[j];
    const T next = keep * w[j] - rate * mean / (sqrt(square) * inv_root + static_cast<T>(rule.eps));
    m[j] = kept[j] != 0 ? mean : T(0);
    v[j] = kept[j] != 0 ? square : T(0);
    w[j] = kept[j] != 0 ? next : T(0);
  }
  store_share<kWidth>(entry.mean, share, m);
  store_share<kWidth>(entry.square, share, v);
  store_share<kWidth>(entry.weight, share, w);
}

template <class T>
void update(std::span<const AdamWOperands> operands, const Tensor& step_state, const AdamWRule& rule) {
  const auto total = static_cast<std::int64_t>(operands.size() * sizeof(Corrections));
  const Tensor corrections = Tensor::empty({total}, DType::u8, step_state.device());
  std::vector<AdamWEntry<T>> entries;
  for (const AdamWOperands& o : operands) {
    if (o.weight.dtype() != dtype_of<T>) continue;
    AdamWEntry<T> entry{o.weight.data<T>(), o.grad.data<T>(), o.exp_avg.data<T>(), o.exp_avg_sq.data<T>(),
                        data_or_null<std::uint8_t>(o.mask), o.updates.data<std::int64_t>(),
                        static_cast<Corrections*>(corrections.raw()) + entries.size(), o.weight_decay, o.weight.numel(), false};
    entry.packs = takes_packs<T>({entry.weight, entry.grad, entry.mean, entry.square}, entry.mask);
    entries.push_back(entry);
  }
  const auto* const state = static_cast<const StepStateData*>(step_state.raw());
  for_each_many(std::span<const AdamWEntry<T>>(entries), [&](const Many<AdamWEntry<T>>& many, unsigned blocks) {
    const Device device = step_state.device();
    launch("adamw_count", device, {dim3(1), dim3(Many<AdamWEntry<T>>::kMost)}, adamw_count_kernel<T>, many, rule, state);
    launch("adamw", device, {dim3(blocks), dim3(kManyThreads)}, adamw_kernel<T>, many, rule, state);
  });
}

}  // namespace

void adamw_update(std::span<const AdamWOperands> operands, const Tensor& step_state, const AdamWRule& rule, const Tensor& norm) {
  norm_of_gradients(operands, norm);
  for (const AdamWOperands& o : operands) check_real("adamw", o.weight);
  update<float>(operands, step_state, rule);
  update<double>(operands, step_state, rule);
}

}  // namespace tessera::cuda

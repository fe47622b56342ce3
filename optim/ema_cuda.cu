#include "core/cuda/kernel/multi_tensor.cuh"
#include "core/device/step_state.h"
#include "core/ops/operands.h"
#include "optim/ema.h"

namespace tessera::cuda {
namespace {

template <class T>
struct EmaEntry {
  T* average;
  const T* value;
  const std::uint8_t* mask;
  std::int64_t count;
  bool packs;
};

template <class T>
__global__ void __launch_bounds__(kManyThreads)
    ema_kernel(const __grid_constant__ Many<EmaEntry<T>> many, const StepStateData* state, std::size_t slot) {
  if (state->skip != 0) return;
  constexpr int kWidth = kManyWidth<T>;
  ThreadShare share;
  const EmaEntry<T>& entry = find_entry(many, share);
  const double decay = state->slots[slot];
  const T keep = static_cast<T>(decay);
  const T take = static_cast<T>(1 - decay);
  T average[kManyItems], value[kManyItems];
  std::uint8_t kept[kManyItems];
  load_share<kWidth>(entry.average, share, average);
  load_share<kWidth>(entry.value, share, value);
  load_mask<kWidth>(entry.mask, share, kept);
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) average[j] = kept[j] != 0 ? keep * average[j] + take * value[j] : T(0);
  store_share<kWidth>(entry.average, share, average);
}

template <class T>
void update(std::span<const EmaOperands> operands, std::size_t slot, const Tensor& step_state) {
  std::vector<EmaEntry<T>> entries;
  for (const EmaOperands& o : operands) {
    if (o.value.dtype() != dtype_of<T>) continue;
    EmaEntry<T> entry{o.average.data<T>(), o.value.data<T>(), data_or_null<std::uint8_t>(o.mask), o.value.numel(), false};
    entry.packs = takes_packs<T>({entry.average, entry.value}, entry.mask);
    entries.push_back(entry);
  }
  const auto* const state = static_cast<const StepStateData*>(step_state.raw());
  for_each_many(std::span<const EmaEntry<T>>(entries), [&](const Many<EmaEntry<T>>& many, unsigned blocks) {
    launch("ema", step_state.device(), {dim3(blocks), dim3(kManyThreads)}, ema_kernel<T>, many, state, slot);
  });
}

}  // namespace

void ema_update(std::span<const EmaOperands> operands, std::size_t slot, const Tensor& step_state) {
  for (const EmaOperands& o : operands) check_real("ema", o.value);
  update<float>(operands, slot, step_state);
  update<double>(operands, slot, step_state);
}

}  // namespace tessera::cuda

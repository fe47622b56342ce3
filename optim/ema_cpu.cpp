#include "core/cpu/parallel_tensors.h"
#include "core/device/step_state.h"
#include "optim/ema.h"

namespace tessera::cpu {

namespace {

template <class T>
void update_part(const EmaOperands& o, double decay, std::int64_t begin, std::int64_t end) {
  const T keep = static_cast<T>(decay);
  const T take = static_cast<T>(1 - decay);
  T* const average = o.average.data<T>();
  const T* const value = o.value.data<T>();
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) average[i] = keep * average[i] + take * value[i];
  if (!o.mask.defined()) return;
  const std::uint8_t* const mask = o.mask.data<std::uint8_t>();
  for (std::int64_t i = begin; i < end; ++i) average[i] = mask[i] == 0 ? T(0) : average[i];
}

}  // namespace

void ema_update(std::span<const EmaOperands> operands, std::size_t slot, const Tensor& step_state) {
  if (step_state_data(step_state).skip != 0) return;
  const double decay = step_state_data(step_state).slots[slot];
  const auto value_of = [](const EmaOperands& o) -> const Tensor& { return o.value; };
  parallel_tensors(operands, kGrain, value_of, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    dispatch_real(operands[i].value.dtype(), "ema", [&]<class T>() { update_part<T>(operands[i], decay, begin, end); });
  });
}

}  // namespace tessera::cpu

#include "core/cpu/parallel.h"
#include "core/step_state.h"
#include "optim/ema.h"

namespace tessera::cpu {

void ema_update(const EmaOperands& operands) {
  dispatch_real(operands.value.dtype(), "ema", [&]<class T>() {
    const double decay = step_state_data(operands.step_state).ema_decay;
    const T keep = static_cast<T>(decay);
    const T take = static_cast<T>(1 - decay);
    T* const average = operands.average.data<T>();
    const T* const value = operands.value.data<T>();
    const std::uint8_t* const mask = operands.mask.defined() ? operands.mask.data<std::uint8_t>() : nullptr;
    parallel_for(operands.value.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) average[i] = keep * average[i] + take * value[i];
      if (mask == nullptr) return;
      for (std::int64_t i = begin; i < end; ++i) average[i] = mask[i] == 0 ? T(0) : average[i];
    });
  });
}

}  // namespace tessera::cpu

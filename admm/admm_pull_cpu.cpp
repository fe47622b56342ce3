#include "admm/admm.h"
#include "core/cpu/parallel_tensors.h"
#include "core/device/step_state.h"

namespace tessera::cpu {
namespace {

template <class T>
void pull_part(const AdmmOperands& o, double factor, std::int64_t begin, std::int64_t end) {
  const T rho = static_cast<T>(factor);
  T* const gradient = o.gradient.data<T>();
  const T* const weight = o.weight.data<T>();
  const T* const z = o.z.data<T>();
  const T* const u = o.u.data<T>();
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) gradient[i] += rho * (weight[i] - z[i] + u[i]);
}

}  // namespace

void admm_pull(std::span<const AdmmOperands> operands, std::size_t slot, const Tensor& step_state) {
  const double rho = step_state_data(step_state).slots[slot];
  const auto weight_of = [](const AdmmOperands& o) -> const Tensor& { return o.weight; };
  parallel_tensors(operands, kGrain, weight_of, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    dispatch_real(operands[i].weight.dtype(), "admm", [&]<class T>() { pull_part<T>(operands[i], rho, begin, end); });
  });
}

}  // namespace tessera::cpu

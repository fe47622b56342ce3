#include "core/cpu/parallel.h"
#include "optim/sgd.h"

namespace tessera::cpu {

namespace {

template <class T>
struct Pointers {
  T* weight;
  const T* grad;
  T* momentum;
  const std::uint8_t* mask;
};

template <class T, bool kMomentum, bool kMask>
void update_range(const Pointers<T>& p, const SgdRule& rule, T lr, std::int64_t begin, std::int64_t end) {
  const T decay = static_cast<T>(rule.weight_decay);
  const T mu = static_cast<T>(rule.momentum);
  const bool nesterov = rule.nesterov;
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) {
    const T g = p.grad[i] + decay * p.weight[i];
    T direction = g;
    if constexpr (kMomentum) {
      const T m = mu * p.momentum[i] + g;
      direction = nesterov ? g + mu * m : m;
      p.momentum[i] = kMask && p.mask[i] == 0 ? T(0) : m;
    }
    const T w = p.weight[i] - lr * direction;
    p.weight[i] = kMask && p.mask[i] == 0 ? T(0) : w;
  }
}

template <class T, bool kMomentum>
void update_all(const Pointers<T>& p, const SgdRule& rule, T lr, std::int64_t count) {
  parallel_for(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (p.mask != nullptr) {
      update_range<T, kMomentum, true>(p, rule, lr, begin, end);
    } else {
      update_range<T, kMomentum, false>(p, rule, lr, begin, end);
    }
  });
}

}  // namespace

void sgd_update(const UpdateOperands& operands, const Tensor& momentum, const SgdRule& rule) {
  dispatch_real(operands.weight.dtype(), "sgd", [&]<class T>() {
    const Pointers<T> p{operands.weight.data<T>(), operands.grad.data<T>(), momentum.defined() ? momentum.data<T>() : nullptr,
                        operands.mask.defined() ? operands.mask.data<std::uint8_t>() : nullptr};
    const T lr = static_cast<T>(step_state_data(operands.step_state).lr);
    if (p.momentum != nullptr) {
      update_all<T, true>(p, rule, lr, operands.weight.numel());
    } else {
      update_all<T, false>(p, rule, lr, operands.weight.numel());
    }
  });
}

}  // namespace tessera::cpu

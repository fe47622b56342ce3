#include "optim/grad_clip.h"
#include "optim/sgd.h"
#include "optim/walk_updates.h"

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
void update_range(const Pointers<T>& p, const SgdRule& rule, double weight_decay, T lr, std::int64_t begin, std::int64_t end) {
  const T decay = static_cast<T>(weight_decay);
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

template <class T>
auto update_of(const SgdOperands& o, const SgdRule& rule, double lr) {
  const Pointers<T> p{o.weight.data<T>(), o.grad.data<T>(), o.momentum.defined() ? o.momentum.data<T>() : nullptr,
                      o.mask.defined() ? o.mask.data<std::uint8_t>() : nullptr};
  return [p, &o, &rule, lr](std::int64_t begin, std::int64_t end) {
    const auto run = [&](const auto& range) { range(p, rule, o.weight_decay, static_cast<T>(lr), begin, end); };
    if (p.momentum != nullptr) return p.mask != nullptr ? run(update_range<T, true, true>) : run(update_range<T, true, false>);
    p.mask != nullptr ? run(update_range<T, false, true>) : run(update_range<T, false, false>);
  };
}

}  // namespace

void sgd_update(std::span<const SgdOperands> operands, const Tensor& step_state, const SgdRule& rule, const Tensor& norm) {
  if (step_state_data(step_state).skip != 0) return norm_of_gradients(operands, norm);
  const double lr = step_state_data(step_state).lr;
  walk_updates(operands, norm, "sgd", [&]<class T>(const SgdOperands& o) { return update_of<T>(o, rule, lr); });
}

}  // namespace tessera::cpu

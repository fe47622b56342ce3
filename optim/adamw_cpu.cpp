#include <cmath>

#include "optim/adamw.h"
#include "optim/grad_clip.h"
#include "optim/walk_updates.h"

namespace tessera::cpu {

namespace {

template <class T>
struct Pointers {
  T* weight;
  const T* grad;
  T* mean;
  T* square;
  const std::uint8_t* mask;
};

// The factors of one update, which are the same for all elements.
template <class T>
struct Factors {
  T keep;      // 1 - lr weight_decay
  T beta1, beta2;
  T one_minus_beta1, one_minus_beta2;
  T rate;      // lr / (1 - beta1^t)
  T inv_root;  // 1 / sqrt(1 - beta2^t)
  T eps;
};

template <class T>
Factors<T> factors(const AdamWRule& rule, double weight_decay, double lr, double t) {
  return {.keep = static_cast<T>(1 - lr * weight_decay),
          .beta1 = static_cast<T>(rule.beta1),
          .beta2 = static_cast<T>(rule.beta2),
          .one_minus_beta1 = static_cast<T>(1 - rule.beta1),
          .one_minus_beta2 = static_cast<T>(1 - rule.beta2),
          .rate = static_cast<T>(lr / (1 - std::pow(rule.beta1, t))),
          .inv_root = static_cast<T>(1 / std::sqrt(1 - std::pow(rule.beta2, t))),
          .eps = static_cast<T>(rule.eps)};
}

template <class T, bool kMask>
void update_range(const Pointers<T>& p, const Factors<T>& f, std::int64_t begin, std::int64_t end) {
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) {
    const T g = p.grad[i];
    const T mean = f.beta1 * p.mean[i] + f.one_minus_beta1 * g;
    const T square = f.beta2 * p.square[i] + f.one_minus_beta2 * g * g;
    const T w = f.keep * p.weight[i] - f.rate * mean / (std::sqrt(square) * f.inv_root + f.eps);
    const bool kept = !kMask || p.mask[i] != 0;
    p.mean[i] = kept ? mean : T(0);
    p.square[i] = kept ? square : T(0);
    p.weight[i] = kept ? w : T(0);
  }
}

template <class T>
auto update_of(const AdamWOperands& o, const AdamWRule& rule, double lr) {
  const Pointers<T> p{o.weight.data<T>(), o.grad.data<T>(), o.exp_avg.data<T>(), o.exp_avg_sq.data<T>(),
                      o.mask.defined() ? o.mask.data<std::uint8_t>() : nullptr};
  const auto f = factors<T>(rule, o.weight_decay, lr, static_cast<double>(*o.updates.data<std::int64_t>()));
  return [p, f](std::int64_t begin, std::int64_t end) {
    p.mask != nullptr ? update_range<T, true>(p, f, begin, end) : update_range<T, false>(p, f, begin, end);
  };
}

}  // namespace

void adamw_update(std::span<const AdamWOperands> operands, const Tensor& step_state, const AdamWRule& rule, const Tensor& norm) {
  if (step_state_data(step_state).skip != 0) return norm_of_gradients(operands, norm);
  for (const AdamWOperands& o : operands) ++*o.updates.data<std::int64_t>();
  const double lr = step_state_data(step_state).lr;
  walk_updates(operands, norm, "adamw", [&]<class T>(const AdamWOperands& o) { return update_of<T>(o, rule, lr); });
}

}  // namespace tessera::cpu

// Softmax of a row of scale * x, log-softmax, and the gradients of both, for the walks of row_kernel.cuh. A walk holds a row in
// registers or reads it again.
#pragma once

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/exp_sum.cuh"
#include "core/cuda/kernel/row_kernel.cuh"

namespace tessera::cuda {

template <class T, bool kLog>
struct SoftmaxForward {
  using C = Compute<T>;
  const T* x;
  T* y;
  C scale = 1;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool) const {
    if constexpr (Walk::kPacks > 0)
      held(walk);
    else
      streamed(walk);
  }

  template <class Walk>
  __device__ void held(const Walk& walk) const {
    Numbers<T, Walk::kPack> v[Walk::kPacks];
    walk.for_each([&](int k, std::int64_t at) { v[k] = scaled<Walk::kPack>(at); });
    C top = -static_cast<C>(INFINITY);
    walk.for_each([&](int k, std::int64_t) {
      for (const C value : v[k].at) top = larger(top, value);
    });
    top = Walk::reduce(top, Larger());
    C total = 0;
    walk.for_each([&](int k, std::int64_t) {
      for (C& value : v[k].at) {
        value -= top;
        const C power = exp(value);
        total += power;
        if constexpr (!kLog) value = power;
      }
    });
    total = Walk::reduce(total, Plus());
    const C last = kLog ? log(total) : 1 / total;
    walk.for_each([&](int k, std::int64_t at) {
      for (C& value : v[k].at) value = kLog ? value - last : value * last;
      v[k].store(y + at);
    });
  }

  template <class Walk>
  __device__ void streamed(const Walk& walk) const {
    auto sum = ExpSum<C>::none();
    walk.for_each([&](int, std::int64_t at) { sum.add(scaled<Walk::kPack>(at)); });
    sum = Walk::reduce(sum, JoinExpSums());
    const C top = sum.top;
    const C last = static_cast<C>(kLog ? log(sum.total) : 1 / sum.total);
    walk.for_each([&](int, std::int64_t at) {
      auto v = scaled<Walk::kPack>(at);
      for (C& value : v.at) value = kLog ? value - top - last : exp(value - top) * last;
      v.store(y + at);
    });
  }

  template <int N>
  __device__ Numbers<T, N> scaled(std::int64_t at) const {
    auto v = Numbers<T, N>::load(x + at);
    for (C& value : v.at) value *= scale;
    return v;
  }
};

// Softmax: scale * y * (g - sum(g * y)). Log-softmax, which has no scale: g - exp(y) * sum(g).
template <class T, bool kLog>
struct SoftmaxBackward {
  using C = Compute<T>;
  const T* y;
  const T* g;
  T* grad_x;
  C scale = 1;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool) const {
    using Values = Numbers<T, Walk::kPack>;
    constexpr int kPacks = Walk::kPacks > 0 ? Walk::kPacks : 1;
    Values a[kPacks];
    Values b[kPacks];
    C sum = 0;
    double long_sum = 0;  // for a row that is not held: it has too many terms for a sum in C
    walk.for_each([&](int k, std::int64_t at) {
      a[k] = Values::load(y + at);
      b[k] = Values::load(g + at);
      if constexpr (Walk::kPacks == 0) long_sum += static_cast<double>(term(a[k], b[k]));
    });
    if constexpr (Walk::kPacks == 0) {
      sum = static_cast<C>(Walk::reduce(long_sum, Plus()));
    } else {
      walk.for_each([&](int k, std::int64_t) { sum += term(a[k], b[k]); });
      sum = Walk::reduce(sum, Plus());
    }
    walk.for_each([&](int k, std::int64_t at) {
      if constexpr (Walk::kPacks == 0) {
        a[k] = Values::load(y + at);
        b[k] = Values::load(g + at);
      }
      for (int i = 0; i < Walk::kPack; ++i) {
        a[k].at[i] = kLog ? b[k].at[i] - exp(a[k].at[i]) * sum : scale * a[k].at[i] * (b[k].at[i] - sum);
      }
      a[k].store(grad_x + at);
    });
  }

  template <class Values>
  __device__ static C term(const Values& a, const Values& b) {
    C sum = 0;
    for (int i = 0; i < static_cast<int>(sizeof(a.at) / sizeof(C)); ++i) sum += kLog ? b.at[i] : b.at[i] * a.at[i];
    return sum;
  }
};

}  // namespace tessera::cuda

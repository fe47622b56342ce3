// The sum of exponentials that softmax and cross entropy divide by, in one pass over the elements.
#pragma once

#include "core/cuda/kernel/reduce.cuh"

namespace tessera::cuda {

// The largest element so far (top) and the sum of exp(x - top). Softmax needs both; one pass computes them (Milakov & Gimelshein
// 2018, "Online normalizer calculation for softmax"). A NaN reaches the total. Elements of -inf add nothing.
template <class C>
struct ExpSum {
  C top;
  double total;

  __device__ static ExpSum none() { return {-static_cast<C>(INFINITY), 0.0}; }
  template <int N, class T>
  __device__ void add(const Numbers<T, N>& x) {
    C best = top;
#pragma unroll
    for (int i = 0; i < N; ++i) best = larger(best, x.at[i]);
    C sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) sum += x.at[i] == -static_cast<C>(INFINITY) ? C(0) : exp(x.at[i] - best);
    total = scaled_to(best) + static_cast<double>(sum);
    top = best;
  }
  __device__ double scaled_to(C best) const { return best == top ? total : total * static_cast<double>(exp(top - best)); }
};
struct JoinExpSums {
  template <class C>
  __device__ ExpSum<C> operator()(const ExpSum<C>& a, const ExpSum<C>& b) const {
    const C best = larger(a.top, b.top);
    return {best, a.scaled_to(best) + b.scaled_to(best)};
  }
};

}  // namespace tessera::cuda

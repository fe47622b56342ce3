// Vectors of W floats. Included only by files that are built for one instruction set each; W tells their instances apart, and
// what is here is of each such file alone.
#pragma once

#include <cstdint>
#include <cstring>

namespace tessera::cpu {
namespace {

template <int W>
struct FloatVector {
  typedef float type __attribute__((vector_size(4 * W)));  // the attribute needs a declarator: no alias
  typedef std::int32_t lanes __attribute__((vector_size(4 * W)));
};
template <int W>
using Vec = typename FloatVector<W>::type;
template <int W>
using IntVec = typename FloatVector<W>::lanes;

template <int W>
[[gnu::always_inline]] inline Vec<W> load(const float* from) {
  Vec<W> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <int W>
[[gnu::always_inline]] inline void store(const Vec<W>& v, float* to) {
  std::memcpy(to, &v, sizeof v);
}

// Exchanges rows and lanes of v by exchanging blocks of 1, 2, 4, ... elements.
template <int W, int Step = 1>
[[gnu::always_inline]] inline void transpose(Vec<W> (&v)[W]) {
  if constexpr (Step < W) {
    IntVec<W> low, high;
    for (int j = 0; j < W; ++j) {
      low[j] = (j & Step) == 0 ? j : W + j - Step;
      high[j] = (j & Step) == 0 ? j + Step : W + j;
    }
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) {
      if ((i & Step) != 0) continue;
      const Vec<W> a = v[i], b = v[i + Step];
      v[i] = __builtin_shuffle(a, b, low);
      v[i + Step] = __builtin_shuffle(a, b, high);
    }
    transpose<W, 2 * Step>(v);
  }
}

}  // namespace
}  // namespace tessera::cpu

// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include <immintrin.h>

#include <cmath>

#include "core/cpu/rows/problem.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::rows {
namespace {

#ifdef __AVX512F__
inline __mmask16 first_lanes(std::int64_t lanes) { return static_cast<__mmask16>((1U << lanes) - 1); }
#endif

template <int W>
[[gnu::always_inline]] inline Vec<W> load_part(const float* from, std::int64_t lanes, float behind) {
#ifdef __AVX512F__
  if constexpr (W == 16) {
    const Vec<W> rest = Vec<W>{} + behind;
    const __m512 v = _mm512_mask_loadu_ps(reinterpret_cast<const __m512&>(rest), first_lanes(lanes), from);
    return reinterpret_cast<const Vec<W>&>(v);
  }
#endif
  Vec<W> v = Vec<W>{} + behind;
  for (std::int64_t i = 0; i < lanes; ++i) v[i] = from[i];
  return v;
}

template <int W>
[[gnu::always_inline]] inline void store_part(const Vec<W>& v, std::int64_t lanes, float* to) {
#ifdef __AVX512F__
  if constexpr (W == 16) return _mm512_mask_storeu_ps(to, first_lanes(lanes), reinterpret_cast<const __m512&>(v));
#endif
  for (std::int64_t i = 0; i < lanes; ++i) to[i] = v[i];
}

template <int W>
[[gnu::always_inline]] inline void store_past_caches(const Vec<W>& v, float* to) {
#ifdef __AVX512F__
  if constexpr (W == 16) return _mm512_stream_ps(to, reinterpret_cast<const __m512&>(v));
#endif
  if constexpr (W == 8) _mm256_stream_ps(to, reinterpret_cast<const __m256&>(v));
}

template <int W>
bool is_aligned(const float* at) {
  return reinterpret_cast<std::uintptr_t>(at) % (W * sizeof(float)) == 0;
}

// Calls write(i, vector at i) for the whole vectors of `count` elements and the rest: at(i, lanes) makes the vector.
template <int W, class At>
[[gnu::always_inline]] inline void write_all(std::int64_t count, Stores stores, float* to, const At& at) {
  std::int64_t i = 0;
  if (stores == Stores::past_caches && is_aligned<W>(to)) {
    for (; i + W <= count; i += W) store_past_caches<W>(at(i), to + i);
    _mm_sfence();
  } else {
    for (; i + W <= count; i += W) store<W>(at(i), to + i);
  }
}

// y = f(x) and y = f(x, g).
template <int W, class F>
void map(const float* x, std::int64_t count, Stores stores, float* y, const F& f) {
  write_all<W>(
      count, stores, y, [&](std::int64_t i) __attribute__((always_inline)) { return f(load<W>(x + i)); });
  const std::int64_t rest = count % W, at = count - rest;
  if (rest > 0) store_part<W>(f(load_part<W>(x + at, rest, 0)), rest, y + at);
}
template <int W, class F>
void map(const float* x, const float* g, std::int64_t count, Stores stores, float* y, const F& f) {
  write_all<W>(
      count, stores, y, [&](std::int64_t i) __attribute__((always_inline)) { return f(load<W>(x + i), load<W>(g + i)); });
  const std::int64_t rest = count % W, at = count - rest;
  if (rest > 0) store_part<W>(f(load_part<W>(x + at, rest, 0), load_part<W>(g + at, rest, 0)), rest, y + at);
}

template <int W>
void gelu_erf(const float* x, std::int64_t count, Stores stores, float* y) {
  map<W>(
      x, count, stores, y, [](const Vec<W>& v) __attribute__((always_inline)) { return v * normal_of<W>(v).below; });
}

template <int W>
void gelu_erf_backward(const float* x, const float* g, std::int64_t count, Stores stores, float* grad_x) {
  map<W>(
      x, g, count, stores, grad_x, [](const Vec<W>& v, const Vec<W>& grad) __attribute__((always_inline)) {
        const Normal<W> normal = normal_of<W>(v);
        return grad * (normal.below + v * 0.398942280F * normal.power);
      });
}

// x (1 + tanh(u)) / 2 = x sigmoid(2 u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
inline constexpr float kTwiceRoot = 1.59576912F, kCubic = 0.044715F;

template <int W>
void gelu_tanh(const float* x, std::int64_t count, Stores stores, float* y) {
  map<W>(
      x, count, stores, y,
      [](const Vec<W>& v) __attribute__((always_inline)) { return v * sigmoid_of<W>(kTwiceRoot * v * (1.0F + kCubic * v * v)); });
}

template <int W>
void gelu_tanh_backward(const float* x, const float* g, std::int64_t count, Stores stores, float* grad_x) {
  map<W>(
      x, g, count, stores, grad_x, [](const Vec<W>& v, const Vec<W>& grad) __attribute__((always_inline)) {
        const Vec<W> square = v * v;
        const Vec<W> s = sigmoid_of<W>(kTwiceRoot * v * (1.0F + kCubic * square));
        return grad * s * (1.0F + v * (1.0F - s) * kTwiceRoot * (1.0F + 3 * kCubic * square));
      });
}

// All lanes joined, halves with halves.
template <int W, class Join>
[[gnu::always_inline]] inline float joined(const Vec<W>& v, const Join& join) {
  if constexpr (W == 2) {
    return join(v[0], v[1]);
  } else {
    Vec<W / 2> half[2];
    std::memcpy(half, &v, sizeof v);
    return joined<W / 2>(join(half[0], half[1]), join);
  }
}

// Of four vectors.
template <int W>
[[gnu::always_inline]] inline float sum_of(const Vec<W> (&v)[4]) {
  const auto plus = [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; };
  return joined<W>(plus(plus(v[0], v[1]), plus(v[2], v[3])), plus);
}
template <int W>
[[gnu::always_inline]] inline float largest_of(const Vec<W> (&v)[4]) {
  const auto larger = [](const auto& a, const auto& b) __attribute__((always_inline)) { return a > b ? a : b; };
  return joined<W>(larger(larger(v[0], v[1]), larger(v[2], v[3])), larger);
}

// Calls body(sums index, vector of the row) with the rest of a row filled up by `behind`; four independent sums hide latencies.
template <int W, class Body>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    body(0, i, std::int64_t{W});
    body(1, i + W, std::int64_t{W});
    body(2, i + 2 * W, std::int64_t{W});
    body(3, i + 3 * W, std::int64_t{W});
  }
  for (; i < n; i += W) body(0, i, n - i < W ? n - i : std::int64_t{W});
}

template <int W>
[[gnu::always_inline]] inline Vec<W> row_part(const float* x, std::int64_t i, std::int64_t lanes, float behind) {
  return lanes == W ? load<W>(x + i) : load_part<W>(x + i, lanes, behind);
}

template <int W>
float top_of(const float* x, std::int64_t n) {
  Vec<W> top[4];
  for (Vec<W>& v : top) v = Vec<W>{} + x[0];
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Vec<W> v = row_part<W>(x, i, lanes, x[0]);
        top[s] = v > top[s] ? v : top[s];
      });
  return largest_of<W>(top);
}

// What lies behind the row is far below: its exponential is 0.
template <int W>
ExpSum exp_sum(const float* x, std::int64_t n) {
  const float top = top_of<W>(x, n);
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes)
             __attribute__((always_inline)) { sums[s] += exp_of<W>(row_part<W>(x, i, lanes, -INFINITY) - top); });
  return {top, sum_of<W>(sums)};
}

template <int W>
ExpSum softmax(const float* x, std::int64_t n, Stores stores, float* y) {
  const float top = top_of<W>(x, n);
  constexpr std::int64_t kHeld = 4096;  // exponentials that stay in the first cache; longer rows compute them twice
  alignas(64) float held[kHeld];
  const bool holds = n <= kHeld;
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Vec<W> e = exp_of<W>(row_part<W>(x, i, lanes, -INFINITY) - top);
        sums[s] += e;
        if (holds) lanes == W ? store<W>(e, held + i) : store_part<W>(e, lanes, held + i);
      });
  const float total = sum_of<W>(sums), scale = 1 / total;
  if (holds) {
    map<W>(
        held, n, stores, y, [&](const Vec<W>& e) __attribute__((always_inline)) { return e * scale; });
  } else {
    map<W>(
        x, n, stores, y, [&](const Vec<W>& v) __attribute__((always_inline)) { return exp_of<W>(v - top) * scale; });
  }
  return {top, total};
}

template <int W>
void shift_and_scale(const float* x, std::int64_t count, float shift, float factor, Stores stores, float* y) {
  map<W>(
      x, count, stores, y, [&](const Vec<W>& v) __attribute__((always_inline)) { return factor * (v + shift); });
}

template <int W>
void softmax_backward(const float* y, const float* g, std::int64_t n, float scale, Stores stores, float* grad_x) {
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes)
             __attribute__((always_inline)) { sums[s] += row_part<W>(y, i, lanes, 0) * row_part<W>(g, i, lanes, 0); });
  const float dot = sum_of<W>(sums);
  map<W>(
      y, g, n, stores,
      grad_x, [&](const Vec<W>& v, const Vec<W>& grad) __attribute__((always_inline)) { return scale * v * (grad - dot); });
}

template <int W>
NormRow layer_norm(const float* x, const float* gamma, const float* beta, std::int64_t n, double eps, Stores stores, float* y) {
  const float share = 1 / static_cast<float>(n);
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes)
             __attribute__((always_inline)) { sums[s] += row_part<W>(x, i, lanes, 0); });
  const float mean = sum_of<W>(sums) * share;
  Vec<W> squares[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Vec<W> d = row_part<W>(x, i, lanes, mean) - mean;
        squares[s] += d * d;
      });
  const float variance = sum_of<W>(squares) * share;
  const auto inv_std = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance) + eps));
  write_all<W>(
      n, stores, y, [&](std::int64_t i) __attribute__((always_inline)) {
        return (load<W>(x + i) - mean) * inv_std * load<W>(gamma + i) + load<W>(beta + i);
      });
  for (std::int64_t i = n / W * W; i < n; ++i) y[i] = (x[i] - mean) * inv_std * gamma[i] + beta[i];
  return {mean, inv_std};
}

template <int W>
void layer_norm_backward(const float* x, const float* g, const float* gamma, const NormRow& row, std::int64_t n, Stores stores,
                         float* grad_x) {
  const float share = 1 / static_cast<float>(n), mean = row.mean, inv_std = row.inv_std;
  Vec<W> plain[4]{}, weighted[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Vec<W> a = row_part<W>(g, i, lanes, 0) * row_part<W>(gamma, i, lanes, 0);
        plain[s] += a;
        weighted[s] += a * (row_part<W>(x, i, lanes, mean) - mean);
      });
  const float offset = sum_of<W>(plain) * share;
  const float slope = sum_of<W>(weighted) * inv_std * inv_std * share;
  write_all<W>(
      n, stores, grad_x, [&](std::int64_t i) __attribute__((always_inline)) {
        return inv_std * (load<W>(g + i) * load<W>(gamma + i) - offset - (load<W>(x + i) - mean) * slope);
      });
  for (std::int64_t i = n / W * W; i < n; ++i) grad_x[i] = inv_std * (g[i] * gamma[i] - offset - (x[i] - mean) * slope);
}

// Adds the sums over R rows to doubles, which weigh more than a row does.
template <int W, int R>
void add_norm_rows(const float* x, const float* g, const NormRow* rows, std::int64_t n, double* gamma, double* beta) {
  typedef double Wide __attribute__((vector_size(8 * W)));
  const auto add = [](const Vec<W>& sum, double* to) __attribute__((always_inline)) {
    Wide at;
    std::memcpy(&at, to, sizeof at);
    at += __builtin_convertvector(sum, Wide);
    std::memcpy(to, &at, sizeof at);
  };
  std::int64_t i = 0;
  for (; i + W <= n; i += W) {
    Vec<W> weighted{}, plain{};
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec<W> here = load<W>(g + r * n + i);
      weighted += here * ((load<W>(x + r * n + i) - rows[r].mean) * rows[r].inv_std);
      plain += here;
    }
    add(weighted, gamma + i);
    add(plain, beta + i);
  }
  for (; i < n; ++i) {
    float weighted = 0, plain = 0;
    for (int r = 0; r < R; ++r) {
      weighted += g[r * n + i] * ((x[r * n + i] - rows[r].mean) * rows[r].inv_std);
      plain += g[r * n + i];
    }
    gamma[i] += static_cast<double>(weighted);
    beta[i] += static_cast<double>(plain);
  }
}

template <int W>
void layer_norm_parameters(const float* x, const float* g, const NormRow* rows, std::int64_t count, std::int64_t n, double* gamma,
                           double* beta) {
  std::int64_t r = 0;
  for (; r + 8 <= count; r += 8) add_norm_rows<W, 8>(x + r * n, g + r * n, rows + r, n, gamma, beta);
  for (; r < count; ++r) add_norm_rows<W, 1>(x + r * n, g + r * n, rows + r, n, gamma, beta);
}

template <int W>
constexpr Kernels kernels_of() {
  return {gelu_erf<W>, gelu_tanh<W>,        gelu_erf_backward<W>, gelu_tanh_backward<W>,  shift_and_scale<W>,      exp_sum<W>,
          softmax<W>,  softmax_backward<W>, layer_norm<W>,        layer_norm_backward<W>, layer_norm_parameters<W>};
}

}  // namespace
}  // namespace tessera::cpu::rows

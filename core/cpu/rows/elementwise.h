// Kernels of long arrays. Included like core/cpu/vectors.h.
#pragma once

#include "core/cpu/rows/pieces.h"
#include "core/cpu/rows/walks.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::rows {
namespace {

#ifdef __AVX512F__
// at(x) is made(y) where |x| is below the end of the pieces, with y what they say of |x|, and beyond() elsewhere and for NaN.
class InPieces {
 public:
  explicit InPieces(const Pieces& pieces) : scale_(Vec<16>{} + pieces.scale), end_(Vec<16>{} + pieces.end) {
    for (int k = 0; k < Pieces::kTerms; ++k) terms_[k] = load<16>(pieces.terms[k]);
  }

  template <class Made, class Beyond>
  [[gnu::always_inline]] Vec<16> at(const Vec<16>& x, const Made& made, const Beyond& beyond) const {
    constexpr float kToIntegers = 12582912.0F;  // 1.5 * 2^23: behind this sum the last bits are the nearest integer
    const Vec<16> size = magnitude<16>(x);
    const Vec<16> shifted = size * scale_ + kToIntegers;
    const Vec<16> t = size * scale_ - (shifted - kToIntegers);
    Vec<16> y = term(Pieces::kTerms - 1, shifted);
    for (int k = Pieces::kTerms - 2; k >= 0; --k) y = y * t + term(k, shifted);
    y = made(y);
    const __mmask16 outside =
        _mm512_cmp_ps_mask(reinterpret_cast<const __m512&>(size), reinterpret_cast<const __m512&>(end_), _CMP_NLT_UQ);
    if (outside != 0) [[unlikely]] {
      const Vec<16> other = beyond();
      const __m512 chosen =
          _mm512_mask_blend_ps(outside, reinterpret_cast<const __m512&>(y), reinterpret_cast<const __m512&>(other));
      y = reinterpret_cast<const Vec<16>&>(chosen);
    }
    return y;
  }

 private:
  [[gnu::always_inline]] Vec<16> term(int power, const Vec<16>& shifted) const {  // looks at the last four bits
    const __m512 found = _mm512_maskz_permutexvar_ps(__mmask16(-1), reinterpret_cast<const __m512i&>(shifted),
                                                     reinterpret_cast<const __m512&>(terms_[power]));
    return reinterpret_cast<const Vec<16>&>(found);
  }

  Vec<16> scale_, end_, terms_[Pieces::kTerms];
};

// x Phi(x) = max(x, 0) - |x| Phi(-|x|).
template <class T, class Beyond>
void gelu_in_pieces(const Pieces& below, const T* x, std::int64_t count, Stores stores, T* y, const Beyond& beyond) {
  map<16>(
      x, count, stores, y, [&, pieces = InPieces(below) ](const Vec<16>& v) __attribute__((always_inline)) {
        const auto made = [&](const Vec<16>& phi) { return larger_of<16>(v, Vec<16>{}) - magnitude<16>(v) * phi; };
        return pieces.at(v, made, [&] { return beyond(v); });
      });
}

// The slopes at x and -x add up to 1.
template <class T, class Beyond>
void slope_in_pieces(const Pieces& below, const T* x, const T* g, std::int64_t count, Stores stores, T* grad_x,
                     const Beyond& beyond) {
  map<16>(
      x, g, count, stores, grad_x,
      [&, pieces = InPieces(below) ](const Vec<16>& v, const Vec<16>& grad) __attribute__((always_inline)) {
        const auto made = [&](const Vec<16>& slope) { return v < 0.0F ? slope : 1.0F - slope; };
        return grad * pieces.at(v, made, [&] { return beyond(v); });
      });
}
#endif

template <int W>
[[gnu::always_inline]] inline Vec<W> erf_slope(const Vec<W>& x) {
  const Normal<W> normal = normal_of<W>(x);
  return normal.below + x * 0.398942280F * normal.power;
}

template <int W, class T>
void gelu_erf(const T* x, std::int64_t count, Stores stores, T* y) {
  const auto exact = [](const Vec<W>& v) __attribute__((always_inline)) { return v * normal_of<W>(v).below; };
#ifdef __AVX512F__
  if constexpr (W == 16) return gelu_in_pieces(gelu_pieces().erf, x, count, stores, y, exact);
#endif
  map<W>(x, count, stores, y, exact);
}

template <int W, class T>
void gelu_erf_backward(const T* x, const T* g, std::int64_t count, Stores stores, T* grad_x) {
  const auto exact = [](const Vec<W>& v) __attribute__((always_inline)) { return erf_slope<W>(v); };
#ifdef __AVX512F__
  if constexpr (W == 16) return slope_in_pieces(gelu_pieces().erf_slope, x, g, count, stores, grad_x, exact);
#endif
  map<W>(
      x, g, count, stores,
      grad_x, [&](const Vec<W>& v, const Vec<W>& grad) __attribute__((always_inline)) { return grad * exact(v); });
}

// x (1 + tanh(u)) / 2 = x sigmoid(2 u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
inline constexpr float kTwiceRoot = 1.59576912F, kCubic = 0.044715F;

template <int W>
[[gnu::always_inline]] inline Vec<W> tanh_share(const Vec<W>& x) {
  return sigmoid_of<W>(kTwiceRoot * x * (1.0F + kCubic * x * x));
}
template <int W>
[[gnu::always_inline]] inline Vec<W> tanh_slope(const Vec<W>& x) {
  const Vec<W> s = tanh_share<W>(x);
  return s * (1.0F + x * (1.0F - s) * kTwiceRoot * (1.0F + 3 * kCubic * x * x));
}

template <int W, class T>
void gelu_tanh(const T* x, std::int64_t count, Stores stores, T* y) {
  const auto exact = [](const Vec<W>& v) __attribute__((always_inline)) { return v * tanh_share<W>(v); };
#ifdef __AVX512F__
  if constexpr (W == 16) return gelu_in_pieces(gelu_pieces().tanh, x, count, stores, y, exact);
#endif
  map<W>(x, count, stores, y, exact);
}

template <int W, class T>
void gelu_tanh_backward(const T* x, const T* g, std::int64_t count, Stores stores, T* grad_x) {
  const auto exact = [](const Vec<W>& v) __attribute__((always_inline)) { return tanh_slope<W>(v); };
#ifdef __AVX512F__
  if constexpr (W == 16) return slope_in_pieces(gelu_pieces().tanh_slope, x, g, count, stores, grad_x, exact);
#endif
  map<W>(
      x, g, count, stores,
      grad_x, [&](const Vec<W>& v, const Vec<W>& grad) __attribute__((always_inline)) { return grad * exact(v); });
}

// The two halves of a row lie side by side. The next row is fetched in the order of addresses, in which memory is fastest.
template <int W, class T>
[[gnu::always_inline]] inline void prefetch_next_row(const T* x, std::int64_t n, std::int64_t i) {
  prefetch(x + 2 * n + 2 * i), prefetch(x + 2 * n + 2 * i + W);
}

template <int W, class T>
void swiglu(const T* x, std::int64_t n, Stores stores, T* y) {
  write_all<W>(
      n, stores, y, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
        prefetch_next_row<W>(x, n, i);
        const Vec<W> gate = row_part<W>(x, i, part);
        return gate * sigmoid_of<W>(gate) * row_part<W>(x + n, i, part);
      });
}

template <int W, class T>
void swiglu_backward(const T* x, const T* g, std::int64_t n, Stores stores, T* grad_x) {
  write_pairs<W>(
      n, stores, grad_x, grad_x + n, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
        prefetch_next_row<W>(x, n, i);
        const Vec<W> gate = row_part<W>(x, i, part), grad = row_part<W>(g, i, part);
        const Vec<W> s = sigmoid_of<W>(gate);
        return Pair<W>{grad * row_part<W>(x + n, i, part) * s * (1.0F + gate * (1.0F - s)), grad * gate * s};
      });
}

template <int W, class T>
void rotate(const T* x, const float* cosine, const float* sine, const HeadRow& row, float sign, Stores stores, T* y) {
  const std::int64_t n = row.half;
  for (std::int64_t first = 0; first < row.rotated * 2 * n; first += 2 * n) {
    write_pairs<W>(
        n, stores, y + first, y + first + n, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
          const Vec<W> a = row_part<W>(x + first, i, part), b = row_part<W>(x + first + n, i, part);
          const Vec<W> c = row_part<W>(cosine, i, part), s = sign * row_part<W>(sine, i, part);
          return Pair<W>{a * c - b * s, b * c + a * s};
        });
  }
  const std::int64_t others = row.rotated * 2 * n;
  if (x != y) {
    map<W>(
        x + others, row.heads * 2 * n - others, stores, y + others,
        [](const Vec<W>& v) __attribute__((always_inline)) { return v; });
  }
}

}  // namespace
}  // namespace tessera::cpu::rows

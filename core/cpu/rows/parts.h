// Loads and stores of whole vectors and of their first lanes alone, and stores past the caches. Included like
// core/cpu/vectors.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "core/cpu/vectors.h"

namespace tessera::cpu::rows {
namespace {

#ifdef __AVX512F__
inline __mmask16 first_lanes(std::int64_t lanes) { return static_cast<__mmask16>((1U << lanes) - 1); }
#endif
inline __m256i first_of_eight(std::int64_t lanes) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(lanes)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Masks in place of branches: next to a branch the compiler does not fuse multiply-adds, and the rest of a row would round
// otherwise than its whole vectors.
template <int W>
[[gnu::always_inline]] inline Vec<W> load_part(const float* from, std::int64_t lanes, float behind) {
  const Vec<W> rest = Vec<W>{} + behind;
#ifdef __AVX512F__
  if constexpr (W == 16) {
    const __m512 v = _mm512_mask_loadu_ps(reinterpret_cast<const __m512&>(rest), first_lanes(lanes), from);
    return reinterpret_cast<const Vec<W>&>(v);
  }
#endif
  if constexpr (W == 8) {
    const __m256i mask = first_of_eight(lanes);
    const __m256 v =
        _mm256_blendv_ps(reinterpret_cast<const __m256&>(rest), _mm256_maskload_ps(from, mask), _mm256_castsi256_ps(mask));
    return reinterpret_cast<const Vec<W>&>(v);
  }
}

template <int W>
[[gnu::always_inline]] inline Vec<W> load_part(const bfloat16* from, std::int64_t lanes, float behind) {
  const Vec<W> rest = Vec<W>{} + behind;
#ifdef __AVX512F__
  if constexpr (W == 16) {
    const Vec<W> all = widened(_mm256_maskz_loadu_epi16(first_lanes(lanes), from));
    const __m512 v =
        _mm512_mask_mov_ps(reinterpret_cast<const __m512&>(rest), first_lanes(lanes), reinterpret_cast<const __m512&>(all));
    return reinterpret_cast<const Vec<W>&>(v);
  }
#endif
  if constexpr (W == 8) {  // AVX2 masks no elements of 16 bits
    __m128i halves = _mm_setzero_si128();
    std::memcpy(&halves, from, static_cast<std::size_t>(lanes) * sizeof(bfloat16));
    const Vec<W> all = widened(halves);
    const __m256 v = _mm256_blendv_ps(reinterpret_cast<const __m256&>(rest), reinterpret_cast<const __m256&>(all),
                                      _mm256_castsi256_ps(first_of_eight(lanes)));
    return reinterpret_cast<const Vec<W>&>(v);
  }
}

template <int W>
[[gnu::always_inline]] inline void store_part(const Vec<W>& v, std::int64_t lanes, float* to) {
#ifdef __AVX512F__
  if constexpr (W == 16) return _mm512_mask_storeu_ps(to, first_lanes(lanes), reinterpret_cast<const __m512&>(v));
#endif
  if constexpr (W == 8) _mm256_maskstore_ps(to, first_of_eight(lanes), reinterpret_cast<const __m256&>(v));
}

template <int W>
[[gnu::always_inline]] inline void store_part(const Vec<W>& v, std::int64_t lanes, bfloat16* to) {
  const auto halves = upper_halves<W>(v);
#ifdef __AVX512F__
  if constexpr (W == 16) return _mm256_mask_storeu_epi16(to, first_lanes(lanes), halves);
#endif
  if constexpr (W == 8) std::memcpy(static_cast<void*>(to), &halves, static_cast<std::size_t>(lanes) * sizeof(bfloat16));
}

template <int W>
[[gnu::always_inline]] inline void store_past_caches(const Vec<W>& v, float* to) {
#ifdef __AVX512F__
  if constexpr (W == 16) return _mm512_stream_ps(to, reinterpret_cast<const __m512&>(v));
#endif
  if constexpr (W == 8) _mm256_stream_ps(to, reinterpret_cast<const __m256&>(v));
}
template <int W>
[[gnu::always_inline]] inline void store_past_caches(const Vec<W>& v, bfloat16* to) {
  if constexpr (W == 16) _mm256_stream_si256(reinterpret_cast<__m256i*>(to), upper_halves<W>(v));
  if constexpr (W == 8) _mm_stream_si128(reinterpret_cast<__m128i*>(to), upper_halves<W>(v));
}

// Elements from `at` to the next address that a whole vector may be stored to past the caches.
template <int W, class T>
std::int64_t to_alignment(const T* at) {
  return static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(at) % (W * sizeof(T)) / sizeof(T));
}

// How many elements of a vector count.
struct Whole {};
struct Part {
  std::int64_t lanes;
};

// `behind` stands for what does not count.
template <int W, class T>
[[gnu::always_inline]] inline Vec<W> row_part(const T* x, std::int64_t i, Whole, float = 0) {
  return load<W>(x + i);
}
template <int W, class T>
[[gnu::always_inline]] inline Vec<W> row_part(const T* x, std::int64_t i, Part part, float behind = 0) {
  return load_part<W>(x + i, part.lanes, behind);
}

// to[i...] += v.
template <int W>
[[gnu::always_inline]] inline void add_part(const Vec<W>& v, std::int64_t i, Whole whole, float* to) {
  store<W>(row_part<W>(to, i, whole) + v, to + i);
}
template <int W>
[[gnu::always_inline]] inline void add_part(const Vec<W>& v, std::int64_t i, Part part, float* to) {
  store_part<W>(row_part<W>(to, i, part) + v, part.lanes, to + i);
}

// Brings an element of the next row into the cache while this one is computed with. Where none follows nothing happens.
[[gnu::always_inline]] inline void prefetch(const void* x) { _mm_prefetch(x, _MM_HINT_T0); }

}  // namespace
}  // namespace tessera::cpu::rows

// Eight bf16 elements as one register of f32. GCC's own conversions of vectors between 16 and 32 bits take twice the
// instructions.
#pragma once

#include <immintrin.h>

#include "core/half.h"

namespace tessera::cpu {

// bf16 is the upper half of an f32.
inline __m256 load_eight(const bfloat16* from) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
// Rounds to nearest, ties to even; NaN stays NaN.
inline void store_eight(__m256 lanes, bfloat16* to) {
  const __m256i bits = _mm256_castps_si256(lanes);
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i half = _mm256_add_epi32(_mm256_and_si256(upper, _mm256_set1_epi32(1)), _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(lanes, lanes, _CMP_UNORD_Q));
  const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, is_nan);
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
}

}  // namespace tessera::cpu

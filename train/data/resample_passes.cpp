#include "train/data/resample_passes.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tessera {
namespace {

constexpr std::int64_t kVectorBytes = 32;
constexpr std::int64_t kTwoPixels = 2 * kResampleChannels;
constexpr std::int64_t kLoadBytes = 16;  // of one load, which uses two pixels (6 bytes)
constexpr int kLowBits = 15;

// Weights of two taps, in the form in which vpmaddwd multiplies them with two bytes. Each weight is high * 2^15 + low. Both parts
// fit into a signed 16-bit half, so the product with a byte and the sum of two products are exact.
struct WeightPair {
  std::int32_t low = 0;
  std::int32_t high = 0;
};

std::vector<WeightPair> paired(const ResampleAxis& axis) {
  const auto halves = [](int first, int second) { return first | second << 16; };
  constexpr int kLow = (1 << kLowBits) - 1;
  std::vector<WeightPair> pairs(axis.weights.size() / 2);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const int first = axis.weights[2 * i];
    const int second = axis.weights[2 * i + 1];
    pairs[i] = {halves(first & kLow, second & kLow), halves(first >> kLowBits, second >> kLowBits)};
  }
  return pairs;
}

std::int64_t pairs_of(const ResampleAxis::Taps& taps) { return (taps.count + 1) / 2; }

__m256i load(const std::uint8_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }

__m128i load_half(const std::uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }

// Eight weighted sums of bytes, as low + high * 2^15. Neither part exceeds the whole sum, which fits an int.
struct Sums {
  __m256i low = _mm256_setzero_si256();
  __m256i high = _mm256_setzero_si256();

  // `bytes`: 16-bit words, those of the two taps next to each other.
  [[gnu::always_inline]] void add(const __m256i& bytes, const WeightPair& weights) {
    low = _mm256_add_epi32(low, _mm256_madd_epi16(bytes, _mm256_set1_epi32(weights.low)));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(bytes, _mm256_set1_epi32(weights.high)));
  }
  [[gnu::always_inline]] __m256i rounded() const {
    const __m256i half = _mm256_set1_epi32(1 << (kResampleBits - 1));
    const __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, kLowBits));
    return _mm256_srai_epi32(_mm256_add_epi32(sum, half), kResampleBits);
  }
};

// Packs 32-bit values to bytes, clamped to 0..255. The order within each 128-bit half is a, b, c, d.
[[gnu::always_inline]] inline __m256i packed(const __m256i& a, const __m256i& b, const __m256i& c, const __m256i& d) {
  return _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
}

// Sums a pixel of each of two rows, one row in each 128-bit half. Writes 4 bytes per row: three channels and one padding byte.
void sum_along(const std::uint8_t* const (&rows)[2], const WeightPair* weights, std::int64_t pairs,
               std::uint8_t* const (&to)[2]) {
  const __m256i side_by_side =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  Sums sums;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const __m128i first = load_half(rows[0] + i * kTwoPixels);
    const __m128i second = load_half(rows[1] + i * kTwoPixels);
    sums.add(_mm256_shuffle_epi8(_mm256_set_m128i(second, first), side_by_side), weights[i]);
  }
  const __m256i sum = sums.rounded();
  const __m256i bytes = packed(sum, sum, sum, sum);
  const int first = _mm256_extract_epi32(bytes, 0);
  const int second = _mm256_extract_epi32(bytes, 4);
  std::memcpy(to[0], &first, sizeof first);
  std::memcpy(to[1], &second, sizeof second);
}

// Writes 32 bytes of one output row.
void sum_down(const std::uint8_t* rows, std::int64_t stride, const WeightPair* weights, std::int64_t pairs, std::uint8_t* to) {
  const __m256i zero = _mm256_setzero_si256();
  Sums sums[4];
  for (std::int64_t i = 0; i < pairs; ++i, rows += 2 * stride) {
    const __m256i first = load(rows);
    const __m256i second = load(rows + stride);
    const __m256i low = _mm256_unpacklo_epi8(first, second);
    const __m256i high = _mm256_unpackhi_epi8(first, second);
    sums[0].add(_mm256_unpacklo_epi8(low, zero), weights[i]);
    sums[1].add(_mm256_unpackhi_epi8(low, zero), weights[i]);
    sums[2].add(_mm256_unpacklo_epi8(high, zero), weights[i]);
    sums[3].add(_mm256_unpackhi_epi8(high, zero), weights[i]);
  }
  const __m256i bytes = packed(sums[0].rounded(), sums[1].rounded(), sums[2].rounded(), sums[3].rounded());
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
}

// Returns the row, with kLoadBytes readable at each of its pixels. After the image's last pixel there is nothing to load, so rows
// near the end are copied to `copy` with padding.
const std::uint8_t* loadable(const PixelRows& rows, std::int64_t row, std::vector<std::uint8_t>& copy) {
  const auto begin = static_cast<std::size_t>(row * rows.stride);
  const auto bytes = static_cast<std::size_t>(rows.width * kResampleChannels);
  if (begin + bytes + kLoadBytes <= rows.bytes.size()) return rows.bytes.data() + begin;
  copy.assign(bytes + kLoadBytes, 0);
  std::ranges::copy(rows.bytes.subspan(begin, bytes), copy.begin());
  return copy.data();
}

}  // namespace

// Follows Pillow, Resample.c: precompute_coeffs() and normalize_coeffs_8bpc() with the triangle filter.
ResampleAxis resample_axis(std::int64_t input, std::int64_t output, std::int64_t first, std::int64_t size) {
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  const double support = std::max(scale, 1.0);
  ResampleAxis axis;
  axis.stride = static_cast<std::int64_t>(std::ceil(support)) * 2 + 2;
  axis.weights.assign(static_cast<std::size_t>(axis.stride * size), 0);
  std::vector<double> exact(static_cast<std::size_t>(axis.stride));
  for (std::int64_t i = 0; i < size; ++i) {
    const double centre = (static_cast<double>(first + i) + 0.5) * scale;
    const auto begin = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - support + 0.5));
    const auto end = std::min(input, static_cast<std::int64_t>(centre + support + 0.5));
    double sum = 0;
    for (std::int64_t x = begin; x < end; ++x) {
      const double weight = std::max(0.0, 1.0 - std::abs((static_cast<double>(x) - centre + 0.5) / support));
      exact[static_cast<std::size_t>(x - begin)] = weight;
      sum += weight;
    }
    for (std::int64_t x = 0; x < end - begin; ++x) {
      const double weight = exact[static_cast<std::size_t>(x)] / sum;
      axis.weights[static_cast<std::size_t>(i * axis.stride + x)] = static_cast<int>(0.5 + weight * (1 << kResampleBits));
    }
    axis.taps.push_back({begin, end - begin});
  }
  return axis;
}

PaddedRows resample_across(const PixelRows& rows, const ResampleAxis& axis) {
  const std::vector<WeightPair> weights = paired(axis);
  PaddedRows narrow;
  narrow.stride = (axis.size() * kResampleChannels / kVectorBytes + 1) * kVectorBytes;
  narrow.bytes.assign(static_cast<std::size_t>((rows.count + 1) * narrow.stride), 0);
  std::vector<std::uint8_t> copies[2];
  for (std::int64_t y = 0; y < rows.count; y += 2) {
    const std::int64_t next = std::min(y + 1, rows.count - 1);  // if the count is odd, the last row is computed twice
    const std::uint8_t* const from[2] = {loadable(rows, y, copies[0]), loadable(rows, next, copies[1])};
    std::uint8_t* const to[2] = {narrow.bytes.data() + y * narrow.stride, narrow.bytes.data() + next * narrow.stride};
    for (std::int64_t x = 0; x < axis.size(); ++x) {
      const ResampleAxis::Taps& taps = axis.taps[static_cast<std::size_t>(x)];
      const std::int64_t offset = taps.begin * kResampleChannels;
      const std::int64_t place = x * kResampleChannels;
      sum_along({from[0] + offset, from[1] + offset}, &weights[static_cast<std::size_t>(x * axis.stride / 2)], pairs_of(taps),
                {to[0] + place, to[1] + place});
    }
  }
  return narrow;
}

void resample_down(const PaddedRows& rows, const ResampleAxis& axis, std::int64_t row_bytes, std::span<std::uint8_t> out) {
  const std::vector<WeightPair> weights = paired(axis);
  std::uint8_t last[kVectorBytes];
  for (std::int64_t y = 0; y < axis.size(); ++y) {
    const ResampleAxis::Taps& taps = axis.taps[static_cast<std::size_t>(y)];
    const std::uint8_t* const from = rows.bytes.data() + (taps.begin - axis.begin()) * rows.stride;
    const WeightPair* const pairs = &weights[static_cast<std::size_t>(y * axis.stride / 2)];
    std::uint8_t* const to = out.data() + y * row_bytes;
    for (std::int64_t x = 0; x < row_bytes; x += kVectorBytes) {
      const std::int64_t left = std::min(kVectorBytes, row_bytes - x);
      sum_down(from + x, rows.stride, pairs, pairs_of(taps), left == kVectorBytes ? to + x : last);
      if (left < kVectorBytes) std::copy_n(last, left, to + x);
    }
  }
}

}  // namespace tessera

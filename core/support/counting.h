// Counts of sizes that a file may have chosen. No size is negative.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

namespace tessera {

// The most elements of an activation and of a network's input, so that their bytes can be counted. Their product with the size of
// a weight may not fit in 64 bits: 2^40 outputs of 2^23 weights are 2^63 multiply-adds.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

// Whether sizes are those of at most kMostElements elements. A 0 counts as 1, so that no order of the sizes hides an overflow.
inline bool can_be_counted(std::span<const std::int64_t> sizes) {
  std::int64_t elements = 1;
  return std::ranges::all_of(sizes, [&](std::int64_t size) {
    return !__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements) && elements <= kMostElements;
  });
}

// What product_of() and sum_of() give where the result, or one on the way to it, is larger than a number holds.
inline constexpr std::int64_t kUncounted = std::numeric_limits<std::int64_t>::max();

inline std::int64_t product_of(std::span<const std::int64_t> sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(product, size, &product)) return kUncounted;
  }
  return product;
}
inline std::int64_t product_of(std::initializer_list<std::int64_t> sizes) {
  return product_of(std::span(sizes.begin(), sizes.size()));
}

inline std::int64_t sum_of(std::initializer_list<std::int64_t> sizes) {
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    if (__builtin_add_overflow(sum, size, &sum)) return kUncounted;
  }
  return sum;
}

}  // namespace tessera

// Offsets of the n-th item in several strided operands, in 32 bits and without a division.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/strided_loop.h"

namespace tessera::cuda {

// n / divisor for n and divisor below 2^31, as a multiplication and a shift (Granlund and Montgomery, PLDI 1994, fig. 4.1).
struct Divisor {
  std::uint32_t divisor = 1;
  std::uint32_t magic = 1;
  std::uint32_t shift = 0;

  Divisor() = default;
  explicit Divisor(std::uint32_t d) : divisor(d) {
    while ((std::uint64_t{1} << shift) < d) ++shift;
    magic = static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - d) << 32) / d + 1);
  }
  TESSERA_HD std::uint32_t quotient(std::uint32_t n) const {
    return (static_cast<std::uint32_t>((std::uint64_t{n} * magic) >> 32) + n) >> shift;
  }
};

// One item is `width` neighbours along the innermost axis. Axes are ordered innermost first.
template <std::size_t N>
struct StridedOffsets {
  int rank = 1;
  std::uint32_t items = 0;
  std::uint32_t tail = 0;  // elements after the last whole item, in a loop of a single row
  Divisor sizes[Shape::kMaxRank];  // in items
  std::uint32_t strides[Shape::kMaxRank][N] = {};  // in elements, from item to item
  bool repeats[N] = {};  // one element serves a whole item

  TESSERA_HD void of(std::uint32_t item, std::uint32_t (&at)[N]) const {
    for (std::size_t k = 0; k < N; ++k) at[k] = 0;
    int axis = 0;
    for (; axis + 1 < rank; ++axis) {
      const std::uint32_t outer = sizes[axis].quotient(item);
      const std::uint32_t index = item - outer * sizes[axis].divisor;
      for (std::size_t k = 0; k < N; ++k) at[k] += index * strides[axis][k];
      item = outer;
    }
    for (std::size_t k = 0; k < N; ++k) at[k] += item * strides[axis][k];
  }
};

template <std::size_t N>
std::int64_t numel_of(const StridedLoop<N>& loop) {
  return loop.outer() * loop.inner();
}

// Whether 32 bits hold the number of every item and the offsets of every operand.
template <std::size_t N>
bool fits_32_bits(const StridedLoop<N>& loop) {
  constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - 1;
  if (numel_of(loop) > kLimit) return false;
  for (std::size_t k = 0; k < N; ++k) {
    std::int64_t last = 0;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(loop.rank); ++axis) {
      last += (loop.sizes[axis] - 1) * loop.strides[k][axis];
    }
    if (last > kLimit) return false;
  }
  return true;
}

// For a loop that fits 32 bits. A width above 1 needs inner strides of 0 or 1. With several rows, it must divide the inner size.
template <std::size_t N>
StridedOffsets<N> strided_offsets(const StridedLoop<N>& loop, int width) {
  StridedOffsets<N> offsets;
  offsets.rank = loop.rank;
  offsets.items = static_cast<std::uint32_t>(loop.outer() * (loop.inner() / width));
  offsets.tail = static_cast<std::uint32_t>(loop.inner() % width);
  for (int axis = 0; axis < loop.rank; ++axis) {
    const auto from = static_cast<std::size_t>(loop.rank - 1 - axis);
    const int scale = axis == 0 ? width : 1;
    offsets.sizes[axis] = Divisor(static_cast<std::uint32_t>(loop.sizes[from] / scale));
    for (std::size_t k = 0; k < N; ++k) offsets.strides[axis][k] = static_cast<std::uint32_t>(loop.strides[k][from] * scale);
  }
  for (std::size_t k = 0; k < N; ++k) offsets.repeats[k] = width > 1 && loop.inner_stride(k) == 0;
  return offsets;
}

// Calls visit(part, offsets of its first element) for parts that fit 32 bits, or for the loop itself if it fits.
template <std::size_t N, class Visit>
void for_each_part(StridedLoop<N> loop, const std::array<std::int64_t, N>& at, Visit&& visit) {
  if (fits_32_bits(loop)) return visit(loop, at);
  std::size_t longest = 0;
  std::int64_t reach = 0;  // largest distance along the longest axis in any operand, in elements
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(loop.rank); ++axis) {
    std::int64_t stride = 1;
    for (std::size_t k = 0; k < N; ++k) stride = std::max(stride, loop.strides[k][axis]);
    if ((loop.sizes[axis] - 1) * stride <= reach) continue;
    reach = (loop.sizes[axis] - 1) * stride;
    longest = axis;
  }
  constexpr std::int64_t kStep = 4096;  // keeps the second half of a row as aligned as the first
  const std::int64_t size = loop.sizes[longest];
  const std::int64_t half = size > 2 * kStep ? size / 2 / kStep * kStep : size / 2;
  std::array<std::int64_t, N> behind = at;
  for (std::size_t k = 0; k < N; ++k) behind[k] += half * loop.strides[k][longest];
  loop.sizes[longest] = half;
  for_each_part(loop, at, visit);
  loop.sizes[longest] = size - half;
  for_each_part(loop, behind, visit);
}

}  // namespace tessera::cuda

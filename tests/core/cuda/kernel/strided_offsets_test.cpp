// Checks the index arithmetic of the elementwise kernels against divisions and 64-bit offsets.
#include "core/cuda/kernel/strided_offsets.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace tessera::cuda {
namespace {

// A loop as make_strided_loop() returns it: outermost axis first.
template <std::size_t N>
StridedLoop<N> loop_of(const std::vector<std::int64_t>& sizes, const std::array<std::vector<std::int64_t>, N>& strides) {
  StridedLoop<N> loop;
  loop.rank = static_cast<int>(sizes.size());
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    loop.sizes[axis] = sizes[axis];
    for (std::size_t k = 0; k < N; ++k) loop.strides[k][axis] = strides[k][axis];
  }
  return loop;
}

void expect_quotients(std::uint32_t d, std::mt19937& random) {
  const Divisor divisor(d);
  std::vector<std::uint32_t> numerators{0, d - 1, d, 0x7fffffffu, 0x7ffffffeu};
  for (int i = 0; i < 20; ++i) {
    const std::uint32_t n = static_cast<std::uint32_t>(random()) >> 1;
    const std::uint32_t multiple = n / d * d;
    numerators.insert(numerators.end(), {n, multiple, multiple == 0 ? 0 : multiple - 1});
  }
  for (const std::uint32_t n : numerators) ASSERT_EQ(divisor.quotient(n), n / d) << n << " / " << d;
}

TEST(StridedOffsets, DividesByMultiplication) {
  std::mt19937 random(1);
  for (std::uint32_t d = 1; d < 5000; ++d) expect_quotients(d, random);
  for (int bits = 12; bits < 31; ++bits) {
    for (const std::uint32_t d : {(1u << bits) - 1, 1u << bits, (1u << bits) + 1}) expect_quotients(d, random);
  }
  expect_quotients(0x7fffffffu, random);
  for (int i = 0; i < 20000; ++i) {
    expect_quotients(std::max(1u, static_cast<std::uint32_t>(random()) >> (1 + random() % 31)), random);
  }
}

// Sizes that `width` may divide. Along the last axis operand 0 has stride 1, the other operands have stride 1 or 0.
StridedLoop<3> random_loop(int width, std::mt19937& random) {
  StridedLoop<3> loop;
  loop.rank = 1 + static_cast<int>(random() % 5);
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(loop.rank); ++axis) {
    loop.sizes[axis] = 1 + random() % 7;
    for (auto& strides : loop.strides) strides[axis] = random() % 3 == 0 ? 0 : random() % 50;
  }
  if (width == 1) return loop;
  const auto last = static_cast<std::size_t>(loop.rank - 1);
  loop.sizes[last] = loop.rank > 1 ? width * (1 + random() % 4) : width + random() % 13;
  for (std::size_t k = 0; k < 3; ++k) loop.strides[k][last] = k == 0 ? 1 : random() % 2;
  return loop;
}

// The offset of element number `element` in each operand.
std::array<std::int64_t, 3> expected_offsets(const StridedLoop<3>& loop, std::int64_t element) {
  auto at = loop.offsets(element / loop.inner());
  for (std::size_t k = 0; k < 3; ++k) at[k] += element % loop.inner() * loop.inner_stride(k);
  return at;
}

TEST(StridedOffsets, ItemsLieWhereTheLoopHasThem) {
  std::mt19937 random(2);
  for (int i = 0; i < 1000; ++i) {
    const int width = std::array{1, 2, 4, 16}[random() % 4];
    const StridedLoop<3> loop = random_loop(width, random);
    const StridedOffsets<3> offsets = strided_offsets(loop, width);
    for (std::uint32_t item = 0; item < offsets.items; ++item) {
      std::uint32_t at[3];
      offsets.of(item, at);
      for (int j = 0; j < width; ++j) {
        const auto expected = expected_offsets(loop, std::int64_t{item} * width + j);
        for (std::size_t k = 0; k < 3; ++k) ASSERT_EQ(offsets.repeats[k] ? at[k] : at[k] + static_cast<unsigned>(j), expected[k]);
      }
    }
    ASSERT_EQ(std::int64_t{offsets.items} * width + offsets.tail, numel_of(loop));
  }
}

struct Part {
  StridedLoop<2> loop;
  std::array<std::int64_t, 2> at;
};

std::vector<Part> parts_of(const StridedLoop<2>& loop) {
  std::vector<Part> parts;
  for_each_part<2>(loop, {}, [&](const StridedLoop<2>& part, const std::array<std::int64_t, 2>& at) {
    parts.push_back({part, at});
  });
  return parts;
}

TEST(StridedOffsets, WhatFitsIsOnePart) {
  const auto loop = loop_of<2>({3, 5}, {{{5, 1}, {0, 1}}});
  const std::vector<Part> parts = parts_of(loop);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].loop.sizes, loop.sizes);
}

TEST(StridedOffsets, PartsFit) {
  for (const auto& loop : {loop_of<2>({(std::int64_t{1} << 33) + 12345}, {{{1}, {0}}}),
                           loop_of<2>({3, 5}, {{{std::int64_t{1} << 33, 1}, {5, 1}}}),
                           loop_of<2>({70000, 70000, 2}, {{{140000, 2, 1}, {1, 70000, std::int64_t{70000} * 70000}}})}) {
    ASSERT_FALSE(fits_32_bits(loop));
    std::int64_t elements = 0;
    for (const Part& part : parts_of(loop)) {
      EXPECT_TRUE(fits_32_bits(part.loop));
      elements += numel_of(part.loop);
    }
    EXPECT_EQ(elements, numel_of(loop));
  }
}

// The parts follow one another, and each is as aligned as the first.
TEST(StridedOffsets, PartsOfARowFollowEachOther) {
  std::int64_t next = 0;
  for (const Part& part : parts_of(loop_of<2>({(std::int64_t{1} << 33) + 12345}, {{{1}, {0}}}))) {
    EXPECT_EQ(part.at[0], next);
    EXPECT_EQ(part.at[1], 0);
    EXPECT_EQ(part.at[0] % 4096, 0);
    next += part.loop.sizes[0];
  }
  EXPECT_EQ(next, (std::int64_t{1} << 33) + 12345);
}

}  // namespace
}  // namespace tessera::cuda

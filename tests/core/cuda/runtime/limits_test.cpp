#include "core/cuda/runtime/limits.h"

#include <gtest/gtest.h>

namespace tessera::cuda {
namespace {

constexpr Limits kChip{.shared_per_block = 227 * 1024};

TEST(Limits, SmallBlocksNeedNotAsk) {
  EXPECT_EQ(shared_to_allow(0, 48 * 1024, kChip), 0);
  EXPECT_EQ(shared_to_allow(48 * 1024, 0, kChip), 0);
  EXPECT_EQ(shared_to_allow(40 * 1024, 8 * 1024, kChip), 0);
}

TEST(Limits, StaticSharedMemoryCounts) {
  EXPECT_EQ(shared_to_allow(40 * 1024, 8 * 1024 + 1, kChip), 219 * 1024 - 1);
  EXPECT_EQ(shared_to_allow(100 * 1024, 0, kChip), 227 * 1024);
  EXPECT_EQ(shared_to_allow(219 * 1024, 8 * 1024, kChip), 219 * 1024);
}

TEST(Limits, TooMuchStaysTooMuch) { EXPECT_EQ(shared_to_allow(220 * 1024, 8 * 1024, kChip), 220 * 1024); }

}  // namespace
}  // namespace tessera::cuda

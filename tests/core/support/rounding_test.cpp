#include "core/support/rounding.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace tessera {
namespace {

TEST(Rounding, Upwards) {
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(ceil_div(8, 4), 2);
  EXPECT_EQ(ceil_div(9, 4), 3);
  EXPECT_EQ(round_up(8, 4), 8);
  EXPECT_EQ(round_up(9, 4), 12);
  EXPECT_EQ(round_up(std::size_t{1} << 40 | 1, 512), (std::size_t{1} << 40) + 512);
}

}  // namespace
}  // namespace tessera

#include "core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera {
namespace {

template <class Half>
void expect_every_pattern_survives() {
  for (std::uint32_t pattern = 0; pattern < 0x10000u; ++pattern) {
    const Half half = Half::from_bits(static_cast<std::uint16_t>(pattern));
    const float value = static_cast<float>(half);
    const Half back(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(back))) << pattern;
    } else {
      ASSERT_EQ(back.bits(), pattern);
    }
  }
}

TEST(Half, EveryBfloat16PatternSurvivesAFloat) { expect_every_pattern_survives<bfloat16>(); }
TEST(Half, EveryFloat16PatternSurvivesAFloat) { expect_every_pattern_survives<float16>(); }

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(bfloat16(1.0f + 0x1p-8f).bits(), bfloat16(1.0f).bits());
  EXPECT_EQ(static_cast<float>(bfloat16(1.0f + 0x3p-8f)), 1.0f + 0x4p-8f);
  EXPECT_EQ(static_cast<float>(bfloat16(std::nextafter(1.0f + 0x1p-8f, 2.0f))), 1.0f + 0x1p-7f);
  EXPECT_EQ(float16(1.0f + 0x1p-11f).bits(), float16(1.0f).bits());
  EXPECT_EQ(static_cast<float>(float16(1.0f + 0x3p-11f)), 1.0f + 0x4p-11f);
}

// The definition of rounding: the nearest of all finite values, on a tie the one with an even bit pattern.
TEST(Half, Float16RoundsMidpointsOfAllNeighbours) {
  for (std::uint16_t bits = 0; bits < 0x7bffu; ++bits) {
    const float low = static_cast<float>(float16::from_bits(bits));
    const float high = static_cast<float>(float16::from_bits(static_cast<std::uint16_t>(bits + 1)));
    const float middle = low + (high - low) / 2;  // exact: one more bit than float16 has
    ASSERT_EQ(float16(middle).bits(), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(float16(std::nextafter(middle, high)).bits(), bits + 1);
    ASSERT_EQ(float16(std::nextafter(middle, low)).bits(), bits);
  }
}

TEST(Half, OverflowsToInfinityAndKeepsSigns) {
  EXPECT_EQ(static_cast<float>(float16(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(float16(65519.9f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(float16(65520.0f))));
  EXPECT_EQ(float16(-0.0f).bits(), 0x8000u);
  EXPECT_EQ(static_cast<float>(float16(-0x1p-24f)), -0x1p-24f);
  EXPECT_TRUE(std::isinf(static_cast<float>(bfloat16(std::numeric_limits<float>::max()))));
}

}  // namespace
}  // namespace tessera

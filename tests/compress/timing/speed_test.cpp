#include "compress/timing/speed.h"

#include <gtest/gtest.h>

#include "core/support/error.h"

namespace tessera {
namespace {

const Speed kSpeed{.dense_ms = 2.31, .compressed_ms = 1.51, .ratio = {.median = 1.53, .low = 1.49, .high = 1.58}, .faster = true};
constexpr const char* kText = "faster dense_ms 2.31 compressed_ms 1.51 ratio 1.53 low 1.49 high 1.58";

TEST(Speed, IsWrittenAndReadBack) {
  EXPECT_EQ(to_text(kSpeed), kText);
  const Speed back = speed_from(kText);
  EXPECT_TRUE(back.faster);
  EXPECT_EQ(back.dense_ms, 2.31);
  EXPECT_EQ(back.compressed_ms, 1.51);
  EXPECT_EQ(back.ratio.low, 1.49);
  EXPECT_EQ(to_text(back), kText);
  EXPECT_FALSE(speed_from("not-faster dense_ms 1 compressed_ms 2 ratio 0.5 low 0.4 high 0.6").faster);
}

TEST(Speed, KeepsFourDigits) {
  Speed speed = kSpeed;
  speed.dense_ms = 12345.678;
  speed.ratio.low = 0.000123456;
  EXPECT_EQ(to_text(speed), "faster dense_ms 1.235e+04 compressed_ms 1.51 ratio 1.53 low 0.0001235 high 1.58");
  EXPECT_EQ(to_text(speed_from(to_text(speed))), to_text(speed));
}

TEST(Speed, ReadsForPeople) { EXPECT_EQ(describe(kSpeed.ratio), "1.53x (1.49-1.58)"); }

TEST(Speed, OtherTextIsAnError) {
  for (const char* text :
       {"", "winograd", "faster", "faster dense_ms 2.31", "faster dense_ms x compressed_ms 1 ratio 1 low 1 high 1",
        "faster compressed_ms 1 dense_ms 1 ratio 1 low 1 high 1",
        "faster dense_ms 1 compressed_ms 1 ratio 1 low 1 high 1 and more"}) {
    EXPECT_THROW(speed_from(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace tessera

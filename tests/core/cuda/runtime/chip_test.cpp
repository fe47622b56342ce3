#include "core/cuda/runtime/chip.h"

#include <gtest/gtest.h>

#include "core/cuda/kernel/alignment.h"
#include "tests/support/gpu_limits.h"

namespace tessera::cuda {
namespace {

TEST(Chip, ClockAndBandwidthAreThoseOfTheDriver) {
  const Chip h100 = chip_of(kH100), a100 = chip_of(kA100);
  EXPECT_DOUBLE_EQ(h100.clock, 1.98e9);
  EXPECT_DOUBLE_EQ(a100.clock, 1.41e9);
  EXPECT_NEAR(h100.memory, 3.352e12, 1e9);  // the data sheets say 3.35 and 1.555 TB/s
  EXPECT_NEAR(a100.memory, 1.555e12, 1e9);
  EXPECT_DOUBLE_EQ(h100.cache, h100.l2 * h100.clock * 132);
  Limits h200 = kH100;
  h200.memory_clock = 3'201'000;
  h200.memory_bits = 6144;
  EXPECT_NEAR(chip_of(h200).memory, 4.917e12, 1e9);
}

TEST(Chip, GenerationsDifferInTheirUnits) {
  const auto of = [](int capability) {
    Limits limits = kH100;
    limits.capability = capability;
    return chip_of(limits);
  };
  EXPECT_EQ(of(80).lanes, 64);
  EXPECT_EQ(of(80).tensor, 1024);
  EXPECT_EQ(of(80).library_tensor, 1024);
  EXPECT_EQ(of(86).lanes, 128);
  EXPECT_EQ(of(89).tensor, 512);
  EXPECT_EQ(of(89).library_tensor, 512);
  EXPECT_EQ(of(90).lanes, 128);
  EXPECT_EQ(of(90).library_tensor, 2 * of(90).tensor);
  EXPECT_EQ(of(100).tensor, of(90).tensor);
}

// A time that is infinite or NaN would decide every comparison.
TEST(Chip, ClocksThatTheDriverHidesAreAnA100s) {
  Limits silent = kA100;
  silent.clock = silent.memory_clock = silent.memory_bits = 0;
  EXPECT_EQ(chip_of(silent).clock, chip_of(kA100).clock);
  EXPECT_EQ(chip_of(silent).memory, chip_of(kA100).memory);
}

TEST(Alignment, OfAddresses) {
  alignas(16) const float numbers[8] = {};
  EXPECT_TRUE(is_aligned(numbers, 16));
  EXPECT_FALSE(is_aligned(numbers + 1, 16));
  EXPECT_TRUE(is_aligned(numbers + 1, 4));
  EXPECT_TRUE(is_aligned(nullptr, 16));
}

}  // namespace
}  // namespace tessera::cuda

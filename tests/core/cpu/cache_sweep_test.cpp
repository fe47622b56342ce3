#include "core/cpu/cache_sweep.h"

#include <gtest/gtest.h>

#include "core/cpu/machine_memory.h"

namespace tessera::cpu {
namespace {

TEST(CacheSweep, HoldsOtherBytesFromItsFirstCallOn) {
  const std::size_t before = peak_resident();
  ASSERT_GT(before, 0u);
  CacheSweep unwanted(false), sweep(true);
  unwanted();
  EXPECT_LT(peak_resident(), before + (std::size_t{8} << 20));
  sweep();
  const std::size_t after = peak_resident();
  EXPECT_LE(after, before + (std::size_t{260} << 20));
  sweep();
  EXPECT_LT(peak_resident(), after + (std::size_t{8} << 20));
}

}  // namespace
}  // namespace tessera::cpu

#include "core/cpu/machine_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

namespace tessera::cpu {
namespace {

TEST(PeakResident, RisesWithPagesThatAreTouchedAndStaysWhenTheyAreGone) {
  constexpr std::size_t kBytes = 64 << 20;
  const std::size_t before = peak_resident();
  ASSERT_GT(before, 0u);
  for (int i = 0; i < 2; ++i) {
    std::vector<char> pages(before + kBytes);  // more than was ever resident, whatever earlier tests held
    std::memset(pages.data(), 1, pages.size());
    EXPECT_EQ(pages[pages.size() / 2], 1);
  }
  EXPECT_GE(peak_resident(), before + kBytes);
}

TEST(MachineMemory, IsMoreThanThisProcessHolds) { EXPECT_GT(machine_memory(), peak_resident()); }

// The caches of one core are far smaller than the memory. Every machine has at least a first-level cache.
TEST(LastCache, IsThatOfACore) {
  if (!std::filesystem::exists("/sys/devices/system/cpu/cpu0/cache/index2/size")) GTEST_SKIP() << "the system tells no caches";
  EXPECT_GE(last_cache(), std::size_t{32} << 10);
  EXPECT_LT(last_cache(), machine_memory() / 4);
}

TEST(BytesBeyondCaches, AreTwiceTheLastOneWithinBounds) {
  constexpr std::size_t kMiB = std::size_t{1} << 20, kMost = std::size_t{1} << 50;
  EXPECT_EQ(bytes_beyond_caches(4 * kMiB, 4 * kMiB), 4 * kMiB);
  EXPECT_EQ(bytes_beyond_caches(kMost, kMost), machine_memory() / 16);
  EXPECT_EQ(bytes_beyond_caches(0, kMost), std::min(2 * last_cache(), machine_memory() / 16));
}

}  // namespace
}  // namespace tessera::cpu

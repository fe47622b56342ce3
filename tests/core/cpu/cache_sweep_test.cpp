#include "core/cpu/cache_sweep.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "core/cpu/machine_memory.h"

namespace tessera::cpu {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t resident() {
  std::size_t mapped = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> mapped >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(CacheSweep, TakesMemoryAtItsFirstCallAndWhereItIsWanted) {
  const std::size_t bytes = bytes_beyond_caches(16 * kMiB, 256 * kMiB);
  CacheSweep unwanted(false), sweep(true);
  const std::size_t before = resident();
  unwanted();
  EXPECT_LT(resident(), before + 4 * kMiB);
  sweep();
  const std::size_t after = resident();
  EXPECT_GT(after, before + bytes / 2);  // not all of `bytes`: the allocator may reuse resident pages
  sweep();
  EXPECT_LT(resident(), after + 4 * kMiB);
}

// An empty tensor and one smaller than a cache line, next to one that is large enough.
TEST(CacheFlush, LeavesTensorsAsTheyAreAndTakesNoMemory) {
  constexpr auto kCount = static_cast<std::int64_t>(kLeastFlushedBytes / sizeof(float));
  const Tensor empty = Tensor::empty({0}), few = Tensor::full({23}, 3).slice(0, 3, 20), many = Tensor::full({kCount}, 5);
  const std::size_t before = resident(), flushed = cache_flushes();
  flush_caches_of({&empty, &few, &many});
  EXPECT_EQ(cache_flushes(), flushed + 1);
  EXPECT_LT(resident(), before + 4 * kMiB);
  EXPECT_EQ(few.to_vector<float>(), std::vector<float>(17, 3));
  EXPECT_EQ(many.to_vector<float>(), std::vector<float>(kCount, 5));
}

TEST(CacheFlush, IsForLargeTensorsOnly) {
  const Tensor half = Tensor::full({static_cast<std::int64_t>(kLeastFlushedBytes / sizeof(float) / 2)}, 5);
  const Tensor less = half.slice(0, 1, half.numel());
  const std::size_t flushed = cache_flushes();
  flush_caches_of({&half, &less});
  EXPECT_EQ(cache_flushes(), flushed);
  flush_caches_of({&half, &half});
  EXPECT_EQ(cache_flushes(), flushed + 1);
}

}  // namespace
}  // namespace tessera::cpu

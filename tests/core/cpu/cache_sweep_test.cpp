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
  EXPECT_GT(after, before + bytes / 2);  // an allocator may hold pages that it gives again
  sweep();
  EXPECT_LT(resident(), after + 4 * kMiB);
}

TEST(CacheFlush, LeavesTensorsAsTheyAre) {
  for (const std::int64_t count : {0L, 17L, 3L << 18}) {  // with the other less than kLeastFlushedBytes, and more
    const Tensor a = Tensor::full({count}, 3), b = Tensor::full({1 << 19}, 5);
    const std::size_t before = resident();
    flush({&a, &b});
    EXPECT_LT(resident(), before + 4 * kMiB);
    EXPECT_EQ(a.to_vector<float>(), std::vector<float>(static_cast<std::size_t>(count), 3));
    EXPECT_EQ(b.to_vector<float>(), std::vector<float>(1 << 19, 5));
  }
}

}  // namespace
}  // namespace tessera::cpu

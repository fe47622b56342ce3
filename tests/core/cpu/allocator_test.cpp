#include "core/cpu/allocator.h"

#include <gtest/gtest.h>
#include <sanitizer/asan_interface.h>

#include <cstdint>
#include <limits>

#include "core/device/memory_history.h"
#include "core/support/error.h"
#include "core/tensor.h"

namespace tessera::cpu {
namespace {

TEST(Allocator, HandsFreedBlocksOutAgain) {
  Allocator memory;
  void* block = memory.allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % Allocator::kAlignment, 0u);
  memory.release(block, 1000);
  EXPECT_EQ(memory.stats().in_use, 0u);
  EXPECT_EQ(memory.stats().cached, Allocator::reserved(1000));
  EXPECT_EQ(memory.allocate(Allocator::reserved(1000)), block);
  memory.release(block, 1000);
}

TEST(Allocator, CountsWhatTheSystemGivesAndGetsBack) {
  Allocator memory;
  constexpr std::size_t kLarge = 16 * Allocator::kLeastInArena;
  const auto loop = [&] {
    void* const small = memory.allocate(100);
    void* const large = memory.allocate(kLarge);
    memory.release(small, 100);
    memory.release(large, kLarge);
  };
  loop();
  const Allocator::Traffic first = memory.traffic();
  EXPECT_GE(first.taken, 128 + kLarge);
  EXPECT_LE(first.taken, 128 + kLarge + Allocator::kAlignment) << "one guard, under a sanitizer";
  EXPECT_EQ(first.returned, 0u);
  loop();
  EXPECT_EQ(memory.traffic(), first) << "all of it is used again";
  memory.set_limit(1);
  memory.set_limit(0);
  EXPECT_EQ(memory.traffic(), (Allocator::Traffic{.taken = first.taken, .returned = first.taken}));
  loop();
  EXPECT_EQ(memory.traffic().taken, 2 * first.taken);
}

TEST(Allocator, RoundsToCacheLines) {
  for (std::size_t bytes = 0; bytes < 100'000; bytes += 37) {
    const std::size_t size = Allocator::reserved(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_EQ(size % Allocator::kAlignment, 0u);
    ASSERT_EQ(Allocator::reserved(size), size);
    ASSERT_LE(size, bytes + Allocator::kAlignment);
  }
}

TEST(Allocator, TracksThePeak) {
  Allocator memory;
  void* a = memory.allocate(64);
  void* b = memory.allocate(128);
  memory.release(b, 128);
  EXPECT_EQ(memory.stats().peak, 192u);
  memory.reset_peak();
  EXPECT_EQ(memory.stats().peak, 64u);
  memory.release(a, 64);
}

TEST(Allocator, RefusesMoreThanItsLimitAndNamesBytes) {
  Allocator memory;
  memory.set_limit(1024);
  void* block = memory.allocate(512);
  try {
    memory.allocate(1024);
    FAIL();
  } catch (const OutOfMemoryError& error) {
    EXPECT_STREQ(error.what(), "cpu: out of memory: asked for 1024 bytes, 512 bytes in use, limit 1024 bytes");
    EXPECT_TRUE(error.at_limit());
  }
  memory.release(block, 512);
  memory.release(memory.allocate(1024), 1024);  // the cached 512 bytes make room for it
}

// The request is larger than any address space, so the system refuses it on every machine.
TEST(Allocator, SaysThatTheSystemHasNoMore) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the program where the system has no more memory";
#endif
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1} << 62}) {
    Allocator memory;
    memory.set_limit(limit);
    void* block = memory.allocate(512);
    memory.release(memory.allocate(4096), 4096);
    try {
      memory.allocate(std::size_t{1} << 61);
      FAIL() << "limit " << limit;
    } catch (const OutOfMemoryError& error) {
      EXPECT_STREQ(error.what(),
                   "cpu: out of memory: asked for 2305843009213693952 bytes, 512 bytes in use, the system has no more");
      EXPECT_FALSE(error.at_limit());
      EXPECT_FALSE(error.at("conv1").at_limit());
    }
    EXPECT_EQ(memory.stats().in_use, 512u);
    EXPECT_EQ(memory.stats().cached, 0u) << "what is cached is given back before the system is said to have no more";
    memory.release(block, 512);
  }
}

TEST(Allocator, ALowerLimitHoldsForCachedBlocksToo) {
  Allocator memory;
  memory.release(memory.allocate(4096), 4096);
  memory.set_limit(1024);
  EXPECT_EQ(memory.stats().cached, 0u);
  EXPECT_EQ(memory.stats().limit, 1024u);
  EXPECT_THROW(memory.allocate(4096), OutOfMemoryError);
}

TEST(Allocator, PagesThatTheSystemHasBackDoNotCount) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "reads what a block held before, and blocks are guarded by bytes of their own";
#endif
  constexpr std::size_t kMiB = 1 << 20;
  Allocator memory;
  memory.set_limit(24 * kMiB);
  void* const low = memory.allocate(8 * kMiB);
  void* const between = memory.allocate(4 * kMiB);
  void* high = memory.allocate(8 * kMiB);
  memory.release(low, 8 * kMiB);
  memory.release(high, 8 * kMiB);
  char* const wide = static_cast<char*>(memory.allocate(12 * kMiB));  // fits only after the other blocks went back to the system
  EXPECT_EQ(memory.stats().cached, 0u) << "a hole whose pages the system has";
  wide[0] = 1;
  for (int step = 0; step < 3; ++step) {
    memory.release(wide, 12 * kMiB);
    EXPECT_EQ(memory.stats().cached, 12 * kMiB);
    ASSERT_EQ(memory.allocate(12 * kMiB), wide);
    ASSERT_EQ(wide[0], 1) << "step " << step << " faults its pages in again";
  }
  ASSERT_EQ(memory.allocate(8 * kMiB), low) << "the hole serves on";
  EXPECT_EQ(memory.stats().in_use, 24 * kMiB);
  EXPECT_THROW(memory.allocate(1), OutOfMemoryError);
  memory.release(low, 8 * kMiB);
  memory.release(wide, 12 * kMiB);
  memory.release(between, 4 * kMiB);
}

TEST(Allocator, SizesBeyondAllAddressesAreRefused) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the program where the system has no more memory";
#endif
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {kAll, kAll - 62, kAll - 63, kAll / 2 + 1, kAll / 2}) {
    EXPECT_EQ(Allocator::reserved(bytes), kAll / 2 / 64 * 64) << bytes;
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1024}}) {
      Allocator memory;
      memory.set_limit(limit);
      EXPECT_THROW(memory.allocate(bytes), OutOfMemoryError) << bytes;
      EXPECT_EQ(memory.stats().in_use, 0u);
    }
  }
}

#ifdef __SANITIZE_ADDRESS__
TEST(Allocator, BytesBehindABlockAreGuarded) {
  Allocator memory;
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{1} << 16}) {
    char* const block = static_cast<char*>(memory.allocate(bytes));
    EXPECT_FALSE(__asan_address_is_poisoned(block + bytes - 1));
    EXPECT_TRUE(__asan_address_is_poisoned(block + bytes));
    memory.release(block, bytes);
    EXPECT_TRUE(__asan_address_is_poisoned(block));
  }
}
#endif

TEST(Allocator, StorageReturnsItsBlock) {
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  {
    const Tensor x = Tensor::empty({1000});
    EXPECT_EQ(memory_stats(Device::cpu()).in_use, before + Allocator::reserved(4000));
  }
  EXPECT_EQ(memory_stats(Device::cpu()).in_use, before);
}

TEST(Allocator, HistoryRecordsBytesInUseAfterEachAllocation) {
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  std::vector<std::size_t> seen;
  {
    const MemoryHistory history(Device::cpu());
    const Tensor x = Tensor::empty({1000});
    { const Tensor y = Tensor::empty({100}); }
    const Tensor z = Tensor::empty({10});
    seen = history.in_use();
  }
  const Tensor after = Tensor::empty({10});
  const std::size_t x = before + Allocator::reserved(4000);
  EXPECT_EQ(seen, (std::vector<std::size_t>{x, x + Allocator::reserved(400), x + Allocator::reserved(40)}));
}

}  // namespace
}  // namespace tessera::cpu

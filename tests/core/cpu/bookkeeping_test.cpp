// If the allocator has no memory for its own records, the caller gets the usual out-of-memory error and nothing is lost.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <new>
#include <vector>

#include "core/cpu/allocator.h"
#include "core/support/error.h"

namespace {
constexpr int kNever = -1;
thread_local int news_until_one_fails = kNever;
}  // namespace

#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer defines these operators itself; ours would clash with them
// Replaces the library's operator in this program. Not inlined: GCC would see free() on what it takes for the library's new.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (news_until_one_fails != kNever && news_until_one_fails-- == 0) throw std::bad_alloc();
  if (void* const block = std::malloc(size == 0 ? 1 : size)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
#endif

namespace tessera::cpu {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t mapped_pages() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

// Allocates again and again. Each time a later record entry fails, until every entry has failed once.
void expect_refusals(Allocator& memory, std::size_t bytes, int least) {
  const MemoryStats before = memory.stats();
  int refusals = 0;
  for (;; ++refusals) {
    void* block = nullptr;
    news_until_one_fails = refusals;
    try {
      block = memory.allocate(bytes);
    } catch (const OutOfMemoryError& error) {
      EXPECT_FALSE(error.at_limit());
    }
    news_until_one_fails = kNever;
    if (block != nullptr) {
      memory.release(block, bytes);
      break;
    }
    EXPECT_EQ(memory.stats().in_use, before.in_use) << "refusal " << refusals;
  }
  EXPECT_GE(refusals, least);
}

class Bookkeeping : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer's operators new do not fail";
#endif
  }
};

TEST_F(Bookkeeping, OfASegmentFailsAsAShortageAndUnmapsIt) {
  Allocator memory;
  const std::size_t before = mapped_pages();
  for (int i = 0; i < 3; ++i) {
    news_until_one_fails = 0;
    EXPECT_THROW(memory.allocate(kMiB), OutOfMemoryError);
    news_until_one_fails = kNever;
  }
  EXPECT_LT(mapped_pages() - before, (std::size_t{64} << 20) / 4096);
  expect_refusals(memory, kMiB, 1);
}

TEST_F(Bookkeeping, OfWhatIsLeftOfABlockFailsAsAShortage) {
  Allocator memory;
  void* const whole = memory.allocate(8 * kMiB);
  memory.release(whole, 8 * kMiB);
  expect_refusals(memory, kMiB, 2);
  EXPECT_EQ(memory.allocate(8 * kMiB), whole) << "no part of it is lost";
  memory.release(whole, 8 * kMiB);
}

TEST_F(Bookkeeping, OfTheHistoryFailsAsAShortage) {
  Allocator memory;
  memory.release(memory.allocate(64), 64);
  for (const std::size_t bytes : {std::size_t{64}, kMiB}) {
    std::vector<std::size_t> in_use;
    memory.record(&in_use);
    expect_refusals(memory, bytes, 1);
    EXPECT_EQ(in_use.size(), 1u) << "what was refused left no trace";
    memory.record(nullptr);
  }
  EXPECT_EQ(memory.stats().in_use, 0u);
}

}  // namespace
}  // namespace tessera::cpu

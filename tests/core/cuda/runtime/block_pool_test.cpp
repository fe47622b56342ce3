// The GPU's caching allocator over made-up addresses.
#include "core/cuda/runtime/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

namespace tessera::cuda {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Hands out ranges of an address space that is never accessed.
class Space {
 public:
  explicit Space(std::size_t most = ~std::size_t{0}) : most_(most) {}

  BlockPool::Source source() {
    return {.take =
                [this](std::size_t bytes) -> void* {
              if (taken_ + bytes > most_) return nullptr;
              taken_ += bytes;
              char* const at = next_;
              next_ += bytes + 4096;
              segments_.emplace(at, bytes);
              return at;
            },
            .give =
                [this](void* segment) {
              taken_ -= segments_.at(static_cast<char*>(segment));
              segments_.erase(static_cast<char*>(segment));
            }};
  }
  std::size_t taken() const { return taken_; }
  std::size_t segments() const { return segments_.size(); }

 private:
  std::size_t most_;
  std::size_t taken_ = 0;
  char* next_ = reinterpret_cast<char*>(std::uintptr_t{1} << 40);
  std::map<char*, std::size_t> segments_;
};

TEST(BlockPool, RoundsToItsAlignment) {
  EXPECT_EQ(BlockPool::rounded(0), 512u);
  EXPECT_EQ(BlockPool::rounded(1), 512u);
  EXPECT_EQ(BlockPool::rounded(513), 1024u);
  EXPECT_GT(BlockPool::rounded(~std::size_t{0}), kMiB);  // more than any machine has, not 0
}

TEST(BlockPool, SmallBlocksShareASegment) {
  Space space;
  BlockPool pool(space.source());
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(pool.allocate(4000));
  EXPECT_EQ(space.segments(), 1u);
  EXPECT_EQ(pool.in_use(), 100 * BlockPool::rounded(4000));
  for (void* block : blocks) pool.release(block);
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(pool.reserved(), 2 * kMiB);
}

TEST(BlockPool, FreedNeighboursServeALargerBlock) {
  Space space;
  BlockPool pool(space.source());
  void* const a = pool.allocate(3 * kMiB);
  void* const b = pool.allocate(3 * kMiB);
  void* const c = pool.allocate(3 * kMiB);
  const std::size_t reserved = pool.reserved();
  pool.release(a);
  pool.release(c);
  pool.release(b);
  EXPECT_EQ(pool.allocate(9 * kMiB), a);
  EXPECT_EQ(pool.reserved(), reserved);
}

TEST(BlockPool, TakesTheSmallestThatFits) {
  Space space;
  BlockPool pool(space.source());
  void* const large = pool.allocate(64 * kMiB);
  void* const middle = pool.allocate(32 * kMiB);
  pool.release(large);
  pool.release(middle);
  EXPECT_EQ(pool.allocate(30 * kMiB), middle);
}

TEST(BlockPool, TrimGivesBackWhatNobodyUses) {
  Space space;
  BlockPool pool(space.source());
  void* const kept = pool.allocate(12 * kMiB);
  void* const freed = pool.allocate(40 * kMiB);
  pool.release(freed);
  pool.trim();
  EXPECT_EQ(pool.reserved(), 12 * kMiB);
  EXPECT_EQ(space.taken(), 12 * kMiB);
  pool.release(kept);
  pool.trim();
  EXPECT_EQ(space.segments(), 0u);
}

TEST(BlockPool, SegmentsOfTheirOwnHoldOneBlockEach) {
  Space space;
  BlockPool pool(space.source(), BlockPool::Segments::own);
  void* const a = pool.allocate(4001);
  void* const b = pool.allocate(0);
  EXPECT_EQ(space.segments(), 2u);
  EXPECT_EQ(space.taken(), 4002u);
  EXPECT_EQ(pool.size_of(a), 4001u);
  EXPECT_EQ(pool.in_use(), pool.reserved());
  pool.release(a);
  EXPECT_EQ(space.taken(), 1u);
  pool.trim();
  pool.release(b);
  EXPECT_EQ(space.segments(), 0u);
  EXPECT_EQ(pool.reserved(), 0u);
}

TEST(BlockPool, IsNullWhereTheSourceHasNoMore) {
  Space space(20 * kMiB);
  BlockPool pool(space.source());
  EXPECT_NE(pool.allocate(2 * kMiB), nullptr);
  EXPECT_EQ(pool.allocate(30 * kMiB), nullptr);
  EXPECT_EQ(pool.in_use(), 2 * kMiB);
  EXPECT_NE(pool.allocate(2 * kMiB), nullptr);
}

TEST(BlockPool, GivesItsSegmentsBackAtItsEnd) {
  Space space;
  {
    BlockPool pool(space.source());
    pool.allocate(kMiB);
    pool.allocate(50 * kMiB);
  }
  EXPECT_EQ(space.taken(), 0u);
}

// Blocks in use never overlap, whatever is allocated and freed.
TEST(BlockPool, BlocksInUseAreApart) {
  Space space;
  BlockPool pool(space.source());
  std::map<char*, std::size_t> live;
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    if (live.size() > 40 && random() % 2 == 0) {
      auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      pool.release(victim->first);
      live.erase(victim);
      continue;
    }
    const std::size_t bytes = std::size_t{1} << (random() % 25);
    auto* const at = static_cast<char*>(pool.allocate(bytes));
    ASSERT_NE(at, nullptr);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(at) % 512, 0u);
    const auto after = live.upper_bound(at);
    ASSERT_TRUE(after == live.end() || at + bytes <= after->first);
    ASSERT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= at);
    live.emplace(at, bytes);
  }
  for (const auto& [at, bytes] : live) pool.release(at);
  EXPECT_EQ(pool.in_use(), 0u);
  pool.trim();
  EXPECT_EQ(space.segments(), 0u);
}

}  // namespace
}  // namespace tessera::cuda

#include "core/cpu/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/rng.h"

namespace tessera::cpu {
namespace {

constexpr std::size_t kMiB = 1 << 20;

void* get(Arena& arena, std::size_t size) {
  void* const block = arena.take(size);
  return block != nullptr ? block : arena.grow(size);
}

TEST(Arena, CutsWhatWasFreedInOneSizeForAnother) {
  Arena arena;
  char* const whole = static_cast<char*>(get(arena, 8 * kMiB));
  arena.give(whole, 8 * kMiB);
  EXPECT_EQ(arena.free_bytes(), 8 * kMiB);
  EXPECT_EQ(arena.take(2 * kMiB), whole);
  EXPECT_EQ(arena.take(6 * kMiB), whole + 2 * kMiB);
  EXPECT_EQ(arena.take(64), nullptr);
}

TEST(Arena, JoinsFreeNeighboursInAnyOrder) {
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    Arena arena;
    char* const first = static_cast<char*>(get(arena, 3 * kMiB));
    arena.give(first, 3 * kMiB);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(arena.take(kMiB), first + i * kMiB);
    for (const int i : order) arena.give(first + i * kMiB, kMiB);
    EXPECT_EQ(arena.take(3 * kMiB), first);
  }
}

TEST(Arena, TakesTheSmallestBlockThatIsLargeEnough) {
  Arena arena;
  std::vector<char*> blocks;
  for (const std::size_t size : {4 * kMiB, std::size_t{64}, 2 * kMiB, std::size_t{64}, 3 * kMiB, std::size_t{64}}) {
    blocks.push_back(static_cast<char*>(arena.grow(size)));
  }
  arena.give(blocks[0], 4 * kMiB);
  arena.give(blocks[2], 2 * kMiB);
  arena.give(blocks[4], 3 * kMiB);
  EXPECT_EQ(arena.take(2 * kMiB + 64), blocks[4]);
  EXPECT_EQ(arena.take(2 * kMiB), blocks[2]);
}

TEST(Arena, GrowsTheFreeBlockAtItsEndBeforeItTouchesMore) {
  Arena arena;
  char* const first = static_cast<char*>(arena.grow(kMiB));
  arena.give(first, kMiB);
  EXPECT_EQ(arena.take(4 * kMiB), nullptr);
  EXPECT_EQ(arena.grow(4 * kMiB), first);
  EXPECT_EQ(arena.free_bytes(), 0u);
}

TEST(Arena, TrimGivesPagesBackAndKeepsWhatIsInUse) {
  Arena arena;
  char* const low = static_cast<char*>(arena.grow(4 * kMiB));
  char* const kept = static_cast<char*>(arena.grow(4 * kMiB));
  char* const high = static_cast<char*>(arena.grow(4 * kMiB));
  std::memset(low, 1, 12 * kMiB);
  arena.give(low, 4 * kMiB);
  arena.give(high, 4 * kMiB);
  arena.trim();
  EXPECT_EQ(kept[0], 1);
  EXPECT_EQ(kept[4 * kMiB - 1], 1);
  EXPECT_EQ(arena.free_bytes(), 4 * kMiB) << "what lies before a block in use stays";
  EXPECT_EQ(arena.take(4 * kMiB), low);
  EXPECT_EQ(low[kMiB], 0) << "its pages were given back";
  EXPECT_EQ(arena.grow(4 * kMiB), high);
  arena.give(low, 4 * kMiB);
  arena.give(kept, 4 * kMiB);
  arena.give(high, 4 * kMiB);
  arena.trim();
  EXPECT_EQ(arena.free_bytes(), 0u);
}

TEST(Arena, CountsTheFreeBytesThatHavePages) {
  Arena arena;
  char* const low = static_cast<char*>(arena.grow(8 * kMiB));
  arena.grow(64);
  arena.give(low, 8 * kMiB);
  EXPECT_EQ(arena.resident_bytes(), 8 * kMiB);
  arena.trim();
  EXPECT_EQ(arena.free_bytes(), 8 * kMiB);
  EXPECT_EQ(arena.resident_bytes(), 0u);
  ASSERT_EQ(arena.take(2 * kMiB), low);
  EXPECT_EQ(arena.resident_bytes(), 0u) << "what is left was dropped as well";
  std::memset(low, 1, 2 * kMiB);
  arena.give(low, 2 * kMiB);
  EXPECT_EQ(arena.free_bytes(), 8 * kMiB) << "one block again";
  EXPECT_EQ(arena.resident_bytes(), 2 * kMiB);
  ASSERT_EQ(arena.take(7 * kMiB), low);
  EXPECT_EQ(arena.resident_bytes(), kMiB) << "of the rest at most all";
}

TEST(Arena, ServesMoreThanOneSegmentHolds) {
  Arena arena;
  constexpr std::size_t kSize = 200 * kMiB;
  char* const a = static_cast<char*>(arena.grow(kSize));
  char* const b = static_cast<char*>(arena.grow(kSize));
  char* const c = static_cast<char*>(arena.grow(3 * kSize));
  a[kSize - 1] = b[kSize - 1] = c[3 * kSize - 1] = 1;
  arena.give(a, kSize);
  arena.give(b, kSize);
  EXPECT_EQ(arena.take(2 * kSize), nullptr) << "blocks of two segments are never one";
  arena.give(c, 3 * kSize);
  EXPECT_EQ(arena.take(3 * kSize), c);
  EXPECT_EQ(arena.grow(std::size_t{1} << 61), nullptr);
}

// Live blocks never overlap. At the end every segment is one free block.
TEST(Arena, RandomTrafficKeepsBlocksApart) {
  struct Live {
    std::uint64_t* block;
    std::size_t words;
    std::uint64_t mark;
  };
  Arena arena;
  std::vector<Live> live;
  const RngStream stream(7, "arena", "traffic");
  const auto check_and_give = [&](std::size_t at) {
    const Live gone = live[at];
    ASSERT_EQ(gone.block[0], gone.mark);
    ASSERT_EQ(gone.block[gone.words - 1], gone.mark);
    arena.give(gone.block, gone.words * 8);
    live[at] = live.back();
    live.pop_back();
  };
  std::size_t most = 0;
  std::size_t in_use = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t draw = static_cast<std::uint64_t>(random_below(stream, i, 0, 1 << 30));
    if (live.size() > 40 || (draw % 2 == 0 && !live.empty())) {
      const std::size_t at = (draw / 2) % live.size();
      in_use -= live[at].words * 8;
      check_and_give(at);
    } else {
      const std::size_t words = (1 + (draw / 2) % 2000) * 8;
      auto* const block = static_cast<std::uint64_t*>(get(arena, words * 8));
      block[0] = block[words - 1] = i;
      live.push_back({block, words, i});
      in_use += words * 8;
    }
    if (i % 5000 == 4999) arena.trim();
    most = std::max(most, in_use);
  }
  while (!live.empty()) check_and_give(live.size() - 1);
  const std::size_t all = arena.free_bytes();
  EXPECT_LE(all, 2 * most);
  EXPECT_NE(arena.take(all), nullptr) << "one block again";
}

}  // namespace
}  // namespace tessera::cpu

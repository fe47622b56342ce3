#include "bench/stream.h"

#include <gtest/gtest.h>

#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kMiB = 1024 * 1024;

TEST(Stream, EachSideSaysWhatItMoves) {
  const std::vector<StreamSide> sides = stream_sides(3);
  ASSERT_EQ(sides.size(), 3u);
  EXPECT_EQ(sides[0].contestant.name, "scale");
  EXPECT_DOUBLE_EQ(sides[0].bytes, 2 * 3 * kMiB);
  EXPECT_EQ(sides[1].contestant.name, "scale past the caches");
  EXPECT_DOUBLE_EQ(sides[1].bytes, 2 * 3 * kMiB);
  EXPECT_EQ(sides[2].contestant.name, "scale in place");
  EXPECT_DOUBLE_EQ(sides[2].bytes, 4 * 3 * kMiB);
  for (const StreamSide& side : sides) side.contestant.run();
}

TEST(Stream, CopiesAreHeldAgainstPassesFromOneTensorToAnother) {
  const std::vector<StreamSide> sides = stream_sides(3, {}, false);
  ASSERT_EQ(sides.size(), 2u);
  for (const StreamSide& side : sides) EXPECT_DOUBLE_EQ(side.bytes, 2 * 3 * kMiB) << side.contestant.name;
}

TEST(Stream, ALoopOfTheSameTrafficMovesEachArrayAsOftenAsTheOp) {
  const std::vector<StreamSide> update = traffic_sides({.reads = 1, .updates = 3}, 4096);
  ASSERT_EQ(update.size(), 1u);
  EXPECT_DOUBLE_EQ(update[0].bytes, 7 * 4096);
  const std::vector<StreamSide> fresh = traffic_sides({.reads = 2, .writes = 1}, 4096);
  ASSERT_EQ(fresh.size(), 2u);
  EXPECT_EQ(fresh[1].contestant.name, "same traffic past the caches");
  for (const StreamSide& side : fresh) {
    EXPECT_DOUBLE_EQ(side.bytes, 3 * 4096);
    side.contestant.run();
  }
  EXPECT_THROW(traffic_sides({.reads = 9}, 4096), InternalError);
}

TEST(Stream, AReadSaysWhatItReads) {
  const StreamSide side = read_side(3 << 20);
  EXPECT_DOUBLE_EQ(side.bytes, 3 * kMiB);
  side.contestant.run();
}

TEST(Stream, TheFastestMovesTheMostInATimeHoweverLongItTakes) {
  const auto side = [](const char* name, double bytes) { return StreamSide{{name, [] {}}, bytes}; };
  const std::vector<StreamSide> sides{side("short", 8e6), side("long", 24e6), side("lucky once", 8e6)};
  const std::vector<Samples> ms{{{2, 2, 2}}, {{4, 3, 4}}, {{1, 4, 8}}};
  const Streaming stream = fastest_stream(sides, ms);
  EXPECT_EQ(stream.name, "long");
  EXPECT_EQ(stream.gbytes_per_second, (std::vector<double>{6, 8, 6}));
  EXPECT_EQ(stream.ms, ms[1]);
}

}  // namespace
}  // namespace tessera::bench

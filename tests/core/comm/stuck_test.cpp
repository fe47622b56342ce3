#include "core/comm/stuck.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using std::chrono::seconds;

// The turns of a watcher with a limit of ten seconds, each at a given second.
class StuckWatchTest : public ::testing::Test {
 protected:
  bool at(int second, std::optional<std::uint64_t> work) { return watch_.is_stuck(work, StuckWatch::Time(seconds(second))); }

  StuckWatch watch_{seconds(10), seconds(3)};
};

TEST_F(StuckWatchTest, TheSameWorkBeyondTheLimitIsStuck) {
  for (int second = 0; second <= 10; ++second) EXPECT_FALSE(at(second, 7)) << second;
  EXPECT_TRUE(at(11, 7));
  EXPECT_TRUE(at(12, 7));
}

TEST_F(StuckWatchTest, OtherWorkBeginsAgain) {
  for (int second = 0; second <= 9; ++second) EXPECT_FALSE(at(second, 7));
  for (int second = 10; second <= 20; ++second) EXPECT_FALSE(at(second, 8)) << second;
  EXPECT_TRUE(at(21, 8));
}

TEST_F(StuckWatchTest, NothingToWaitForIsNeverStuck) {
  for (int second = 0; second <= 40; ++second) EXPECT_FALSE(at(second, {}));
  EXPECT_FALSE(at(41, 7));
}

TEST_F(StuckWatchTest, ASuspendedProcessBeginsAgain) {
  for (int second = 0; second <= 9; ++second) EXPECT_FALSE(at(second, 7));
  EXPECT_FALSE(at(1000, 7));
  for (int second = 1001; second <= 1010; ++second) EXPECT_FALSE(at(second, 7)) << second;
  EXPECT_TRUE(at(1011, 7));
}

}  // namespace
}  // namespace tessera

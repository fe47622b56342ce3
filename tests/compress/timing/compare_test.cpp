#include "compress/timing/compare.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compress/timing/veto.h"
#include "layers/sequential.h"
#include "tests/compress/timing/busy.h"

namespace tessera::testing {
namespace {

// 60 rounds with a median ratio of 1.05. The lower end of its interval is the 22nd smallest ratio (Summary's tests).
PairedTimes with_lower_end(double ratio) {
  PairedTimes times{.dense = std::vector<double>(60, 1.05), .compressed = std::vector<double>(60, 1.0)};
  for (std::size_t round = 0; round < 22; ++round) times.dense[(round * 7) % 60] = round < 21 ? 0.9 : ratio;
  return times;
}

TEST(SpeedOf, TheLowerEndOfTheIntervalDecides) {
  for (const auto& [low, faster] : {std::pair(1.019, false), {kFasterRatio, false}, {1.021, true}}) {
    const Speed speed = speed_of(with_lower_end(low));
    EXPECT_EQ(speed.ratio.median, 1.05);
    EXPECT_EQ(speed.ratio.low, low);
    EXPECT_EQ(speed.dense_ms, 1.05);
    EXPECT_EQ(speed.compressed_ms, 1.0);
    EXPECT_EQ(speed.faster, faster) << "lower end " << low;
  }
  EXPECT_EQ(kFasterRatio, 1.02);
}

TEST(SpeedOf, RatiosAreOfTheSameRound) {  // both medians are 1, and one round's ratio in three is below it
  PairedTimes times;
  for (int round = 0; round < 20; ++round) {
    times.dense.insert(times.dense.end(), {0.5, 1, 2});
    times.compressed.insert(times.compressed.end(), {0.4, 2, 1});
  }
  EXPECT_EQ(speed_of(times).dense_ms, 1.0);
  EXPECT_EQ(speed_of(times).compressed_ms, 1.0);
  EXPECT_DOUBLE_EQ(speed_of(times).ratio.median, 1.25);
}

class Calls {
 public:
  int since() const { return Busy::calls - before_; }

 private:
  int before_ = Busy::calls;
};

constexpr Microseconds kNoTime{0};

// At least 50 rounds (docs/report.md), and a default Veto times layers and the network in as many.
TEST(Rounds, ADefaultVetoTakesAtLeastFifty) {
  Busy dense("dense", kNoTime);
  Busy compressed("factored", kNoTime);
  const Calls calls;
  const PairedTimes times = time_layer(dense, compressed, {3, 4}, true, {});
  EXPECT_GE(times.dense.size(), 50u);
  EXPECT_EQ(times.compressed.size(), times.dense.size());
  const int of_one = calls.since();
  EXPECT_GT(of_one, 100) << "both, and a warm-up";

  const Veto veto({.only_faster = false, .batch = 3});
  const Calls of_layer;
  veto.judge(dense, compressed, {1, 4}, true);
  EXPECT_EQ(of_layer.since(), of_one);

  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("a", std::make_unique<Busy>("factored", kNoTime));
  std::vector<Replaced> replaced;
  replaced.push_back({"a", std::make_unique<Busy>("dense", kNoTime)});
  const Calls of_network;
  veto.settle(root, replaced, {1, 4});
  EXPECT_EQ(of_network.since(), of_one);
}

}  // namespace
}  // namespace tessera::testing

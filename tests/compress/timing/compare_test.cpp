#include "compress/timing/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "compress/timing/veto.h"
#include "layers/sequential.h"
#include "tests/compress/timing/busy.h"
#include "tests/support/peak_growth.h"

namespace tessera::testing {
namespace {

// Ten batches that decide and six that are reported, each of four rounds at this ratio.
PairedTimes in_batches(const std::vector<double>& ratios) {
  PairedTimes times;
  for (const double ratio : ratios) {
    times.dense.insert(times.dense.end(), 4, ratio);
    times.compressed.insert(times.compressed.end(), 4, 1.0);
  }
  return times;
}

// With ten batches the lower end of the interval is the second smallest (Summary's tests).
TEST(SpeedOf, TheSecondLowestBatchOfThoseThatDecideDecides) {
  for (const auto& [low, faster] : {std::pair(1.019, false), {kFasterRatio - 1e-9, false}, {1.021, true}}) {
    std::vector<double> ratios(16, 1.05);
    ratios[3] = 0.9;
    ratios[8] = low;
    EXPECT_EQ(speed_of(in_batches(ratios)).faster, faster) << "lower end " << low;
  }
  EXPECT_EQ(kFasterRatio, 1.02);
}

TEST(SpeedOf, WhatIsToldIsOfRoundsThatDidNotDecide) {
  std::vector<double> ratios(16, 1.5);
  std::fill(ratios.begin() + 10, ratios.end(), 1.25);
  ratios[12] = 1.125;
  const Speed speed = speed_of(in_batches(ratios));
  EXPECT_TRUE(speed.faster);
  EXPECT_DOUBLE_EQ(speed.ratio.median, 1.25);
  EXPECT_DOUBLE_EQ(speed.ratio.low, 1.125) << "the least of six";
  EXPECT_EQ(speed.dense_ms, 1.25);
  EXPECT_EQ(speed.compressed_ms, 1.0);

  std::fill(ratios.begin() + 10, ratios.end(), 0.5);
  EXPECT_TRUE(speed_of(in_batches(ratios)).faster) << "decided by the first ten";
  std::fill(ratios.begin(), ratios.begin() + 10, 1.0);
  std::fill(ratios.begin() + 10, ratios.end(), 2.0);
  EXPECT_FALSE(speed_of(in_batches(ratios)).faster);
}

TEST(Undecided, WhereTheIntervalHoldsTheLeastRatioThatCounts) {
  std::vector<double> ratios(16, 1.05);
  EXPECT_FALSE(is_undecided(in_batches(ratios)));
  ratios[3] = ratios[8] = 0.9;
  EXPECT_TRUE(is_undecided(in_batches(ratios))) << "the second lowest of ten is below";
  std::fill(ratios.begin(), ratios.begin() + 10, 1.0);
  EXPECT_FALSE(is_undecided(in_batches(ratios))) << "and not because of what is told";
  PairedTimes told{.dense = {4, 4, 4, 1, 1, 1}, .compressed = {1, 1, 1, 4, 4, 4}, .sampling = Sampling::told_in(6)};
  EXPECT_FALSE(is_undecided(told)) << "nothing is decided";
}

TEST(Joined, BatchesDecideOrAreToldAsInTheirOwnTiming) {
  std::vector<double> first(16, 1.05), second(16, 1.06);
  std::fill(first.begin() + 10, first.end(), 3.0);
  std::fill(second.begin() + 10, second.end(), 5.0);
  first[3] = first[8] = 0.9;
  const PairedTimes both = joined(in_batches(first), in_batches(second));
  EXPECT_EQ(both.sampling.batches, 32);
  EXPECT_EQ(both.sampling.told, 12);
  EXPECT_FALSE(is_undecided(both)) << "two of twenty are below";
  EXPECT_TRUE(speed_of(both).faster);
  std::vector<double> expected(40, 1.05);
  std::fill(expected.begin() + 12, expected.begin() + 16, 0.9);
  std::fill(expected.begin() + 32, expected.begin() + 36, 0.9);
  expected.insert(expected.end(), 40, 1.06);
  expected.insert(expected.end(), 24, 3.0);
  expected.insert(expected.end(), 24, 5.0);
  EXPECT_EQ(both.dense, expected);
  EXPECT_EQ(both.compressed, std::vector<double>(128, 1.0));
}

TEST(SpeedOf, ARatioAndItsInverseWeighTheSame) {
  PairedTimes times{.dense = {4, 4, 4, 1, 1, 1}, .compressed = {1, 1, 1, 4, 4, 4}, .sampling = Sampling::told_in(6)};
  EXPECT_DOUBLE_EQ(speed_of(times).ratio.median, 1.0) << "of rounds";
  times = in_batches(std::vector<double>(16, 1.0));
  for (std::size_t round = 0; round < times.dense.size(); ++round) times.dense[round] = round % 2 == 0 ? 4 : 0.25;
  EXPECT_DOUBLE_EQ(speed_of(times).ratio.median, 1.0) << "of batches";
}

TEST(SpeedOf, RatiosAreOfTheSameRound) {  // both medians are 1, but one ratio in three is lower
  PairedTimes times{.dense = {}, .compressed = {}, .sampling = Sampling::told_in(9)};
  for (int round = 0; round < 3; ++round) {
    times.dense.insert(times.dense.end(), {0.5, 1, 2});
    times.compressed.insert(times.compressed.end(), {0.4, 2, 1});
  }
  EXPECT_EQ(speed_of(times).dense_ms, 1.0);
  EXPECT_EQ(speed_of(times).compressed_ms, 1.0);
  EXPECT_DOUBLE_EQ(speed_of(times).ratio.median, 1.25);
}

TEST(Sampling, ManyRoundsAreBatchesOfFour) {
  for (const auto& [asked, rounds, batches] :
       {std::tuple(1, 1, 1), {6, 6, 1}, {20, 20, 1}, {21, 4, 6}, {24, 4, 6}, {60, 4, 15}, {61, 4, 16}}) {
    const Sampling sampling = Sampling::told_in(asked);
    EXPECT_EQ(sampling.rounds, rounds) << asked;
    EXPECT_EQ(sampling.batches, batches) << asked;
    EXPECT_EQ(sampling.told, 0) << asked;
  }
}

class Calls {
 public:
  int since() const { return Busy::calls - before_; }

 private:
  int before_ = Busy::calls;
};

constexpr Microseconds kPlanned{5000};

// At least 50 rounds (docs/report.md). A default Veto times layers and the network in as many rounds.
TEST(Rounds, ADefaultVetoTakesAtLeastFifty) {
  const PlannedClock clock;
  Busy dense("dense", kPlanned);
  Busy compressed("factored", kPlanned);
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
  root->add_child("a", std::make_unique<Busy>("factored", kPlanned));
  std::vector<Replaced> replaced;
  replaced.push_back({"a", std::make_unique<Busy>("dense", kPlanned)});
  const Calls of_network;
  veto.settle(root, replaced, {1, 4});
  EXPECT_EQ(of_network.since(), of_one);
}

// Sweeping the caches takes more memory than they hold (core/cpu/cache_sweep.h), unlike anything else here.
TEST(FromMemory, OtherBytesFillTheCachesOfALayerAndNotOfANetwork) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  const PlannedClock clock;
  Busy dense("dense", kPlanned), compressed("factored", kPlanned);
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("a", std::make_unique<Busy>("factored", kPlanned));
  std::vector<Replaced> replaced;
  replaced.push_back({"a", std::make_unique<Busy>("dense", kPlanned)});
  TimingOptions options{.sampling = Sampling::told_in(2), .from_memory = true};
  const auto grown = [&](const std::function<void()>& timing) { return peak_growth(timing); };
  const std::optional<std::size_t> of_network = grown([&] { time_network(root, replaced, {3, 4}, options); });
  if (!of_network) GTEST_SKIP() << "the system does not start its count of the most memory again";
  EXPECT_LT(*of_network, 4 * kMiB);
  EXPECT_GT(*grown([&] { time_layer(dense, compressed, {3, 4}, true, options); }), 8 * kMiB);
  EXPECT_GT(*grown([&] { time_dense(dense, {3, 4}, true, options); }), 8 * kMiB);
  options.from_memory = false;
  EXPECT_LT(*grown([&] { time_layer(dense, compressed, {3, 4}, true, options); }), 4 * kMiB);
}

}  // namespace
}  // namespace tessera::testing

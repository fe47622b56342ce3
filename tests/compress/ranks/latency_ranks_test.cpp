// Ranks by time, on recorded times that follow a formula: what is timed, what lies between, what is chosen, what is replayed.
#include "compress/ranks/latency_ranks.h"

#include <gtest/gtest.h>

#include <regex>

#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "compress/report.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/sequential.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

constexpr double kDenseMs = 8;

double number_in(const std::string& text, const char* key) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(str('"', key, "\":(\\d+)"))) ? std::stod(found[1]) : 0;
}

Speed ratio(double value) {
  Speed speed;
  speed.dense_ms = kDenseMs;
  speed.compressed_ms = kDenseMs / value;
  speed.ratio = {value, value, value};
  speed.faster = value > kFasterRatio;
  return speed;
}

// A layer takes 1 ms and 0.002 ms for each element of its core.
double formula_ms(double out, double in) { return 1 + 0.002 * out * in; }

class LatencyRanksTest : public ::testing::Test {
 protected:
  LatencyRanksTest() : root_(std::make_unique<Sequential>()) {
    root_->add_child("a", std::make_unique<Conv2d>(Conv2dConfig{.in = 64, .out = 64, .kernel = {3, 3}, .padding = {1, 1}}));
    root_->add_child("b", std::make_unique<Conv2d>(Conv2dConfig{.in = 64, .out = 64, .kernel = {3, 3}, .padding = {1, 1}}));
    root_->add_child("c", std::make_unique<Conv2d>(Conv2dConfig{.in = 64, .out = 32, .kernel = {3, 3}, .padding = {1, 1}}));
    initialize(*root_, 1);
  }

  static FactoriseConfig config(double speedup, std::int64_t multiple_of = 8) {
    FactoriseConfig config;
    config.layers = "*";
    config.ranks.latency = LatencyTarget{speedup};
    config.ranks.multiple_of = multiple_of;
    return config;
  }
  static Veto veto() { return Veto({.only_faster = false, .batch = 1, .timing = {.rounds = 1}}); }

  PassReport compress(double speedup) {
    FactorisePass pass(config(speedup));
    const Veto clock = veto();
    return run_pass(root_, pass, {1, 4, 4, 64}, &clock);
  }

  // What a choice asks the clock, with layers' times as the formula has them and the network's as `network` says.
  DecisionMap asked(double speedup, double network) {
    DecisionMap known;
    for (int changed = 1; changed > 0;) {
      changed = 0;
      const DecisionScope scope({.measure = true, .known = known});
      FactorisePass pass(config(speedup));
      const Veto clock = veto();
      pass.prepare(root_, {1, 4, 4, 64}, {.veto = &clock});
      for (const auto& [key, text] : scope.taken()) {
        if (!key.starts_with(kLatencyDecision) || known.contains(key)) continue;
        ++changed;
        const double ms = formula_ms(number_in(key, "rank_out"), number_in(key, "rank_in"));
        known[key] = to_text(ratio(key.starts_with("latency.network") ? network : kDenseMs / ms));
      }
    }
    return known;
  }

  std::unique_ptr<Module> root_;
};

TEST_F(LatencyRanksTest, LayersOfOneShapeAreTimedOnceAndOnFewPoints) {
  const DecisionMap known = asked(1.5, 1.5);
  std::size_t layers = 0;
  for (const auto& [key, text] : known) layers += key.starts_with("latency.layer") ? 1 : 0;
  EXPECT_GT(layers, 10u);
  EXPECT_LE(layers, 2 * LatencyTable::kPoints) << "a and b have one shape";
}

TEST_F(LatencyRanksTest, TimesBetweenThePointsAreBilinear) {
  const DecisionScope scope({.known = asked(1.5, 1.5)});
  Trace trace;
  root_->output_shape({1, 4, 4, 64}, &trace);
  const DenseLayer dense = dense_layer(find_module(*root_, "a"), trace.front()).value();
  const Format& format = format_named("tucker2");
  const LatencyTable table({{&format, dense, format.spectra(dense.weight())}, {1, 4, 4, 64}, true}, 8, veto());
  EXPECT_EQ(table.dense_ms(), kDenseMs);
  for (const auto& [out, in] : {std::pair(8, 8), std::pair(16, 24), std::pair(32, 8), std::pair(9, 31)}) {
    EXPECT_NEAR(table.ms({{"out", out}, {"in", in}}), formula_ms(out, in), 0.02) << out << ' ' << in;
  }
  EXPECT_LE(table.points(), LatencyTable::kPoints);
}

TEST_F(LatencyRanksTest, TheNetworkComesToWhatWasAsked) {
  const DecisionScope scope({.known = asked(1.5, 1.5), .forced = {}});
  const PassReport report = compress(1.5);
  ASSERT_TRUE(report.latency);
  EXPECT_TRUE(report.latency->reached());
  EXPECT_EQ(report.latency->measured, 1.5);
  EXPECT_EQ(report.latency->solutions, 1);
  EXPECT_NEAR(report.latency->predicted, 1.5, 0.05);
  for (const LayerReport& row : report.layers) {
    if (row.ranks) {
      for (const Rank& rank : *row.ranks) EXPECT_TRUE(rank.value % 8 == 0) << row.path;
    }
    EXPECT_EQ(row.ranks_asked, "latency speedup 1.5");
  }
  EXPECT_NE(summary(report).find("Ranks by latency: asked 1.5x, predicted "), std::string::npos);
}

TEST_F(LatencyRanksTest, AMissIsRescaledTwiceAndTheNearestTaken) {
  const DecisionScope scope({.known = asked(1.5, 1.7)});
  const PassReport report = compress(1.5);
  ASSERT_TRUE(report.latency);
  EXPECT_EQ(report.latency->solutions, 3);
  EXPECT_EQ(report.latency->measured, 1.7);
}

TEST_F(LatencyRanksTest, WhatCannotBeReachedSaysWhatCan) {
  const DecisionScope scope({.known = asked(3, 1.2)});
  const PassReport report = compress(3);
  ASSERT_TRUE(report.latency);
  EXPECT_FALSE(report.latency->reached());
  EXPECT_NE(summary(report).find(
                "Ranks by latency: 3x cannot be reached; at the fastest ranks of each layer the network is 1.2x as fast"),
            std::string::npos)
      << summary(report);
}

TEST_F(LatencyRanksTest, WhatIsRecordedIsReplayedAndNeverMeasured) {
  const DecisionMap known = asked(1.5, 1.5);
  std::vector<std::string> ranks;
  for (int i = 0; i < 2; ++i) {
    const DecisionScope scope({.known = known});
    FactorisePass pass(config(1.5));
    const Veto clock = veto();
    std::unique_ptr<Module> root = std::make_unique<Sequential>();
    pass.prepare(root_, {1, 4, 4, 64}, {.veto = &clock});
    EXPECT_TRUE(scope.log().measured.empty());
    LayerReport row;
    pass.rewrite(find_module(*root_, "a"), row);
    ranks.push_back(row.ranks ? to_string(*row.ranks) : "dense");
  }
  EXPECT_EQ(ranks.at(0), ranks.at(1));
  const DecisionScope fixed({});
  FactorisePass pass(config(1.5));
  const Veto clock = veto();
  const std::string message = message_of<ConfigError>([&] { pass.prepare(root_, {1, 4, 4, 64}, {.veto = &clock}); });
  EXPECT_NE(message.find("latency is measured, which deterministic: true forbids"), std::string::npos) << message;
}

TEST_F(LatencyRanksTest, TheNetworkStaysAsItWas) {
  std::vector<const Module*> before;
  for_each_module(*root_, [&](const Module& module) { before.push_back(&module); });
  asked(1.5, 1.5);
  std::vector<const Module*> after;
  for_each_module(*root_, [&](const Module& module) { after.push_back(&module); });
  EXPECT_EQ(before, after);
}

TEST_F(LatencyRanksTest, WithoutAClockTheSmallestRanksStand) {
  FactorisePass pass(config(1.5));
  pass.prepare(root_, {1, 4, 4, 64});
  LayerReport row;
  pass.rewrite(find_module(*root_, "a"), row);
  EXPECT_EQ(to_string(row.ranks.value()), "out 8 in 8");
}

}  // namespace
}  // namespace tessera::testing

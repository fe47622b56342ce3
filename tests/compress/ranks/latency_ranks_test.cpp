// Ranks by latency, on recorded times that follow a formula: what is timed, interpolated, chosen and replayed.
#include "compress/ranks/latency_ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <vector>

#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "compress/report.h"
#include "core/device/device_work.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/sequential.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"

namespace tessera::testing {
namespace {

constexpr double kDenseMs = 8;

double number_in(const std::string& text, const char* key) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(str('"', key, "\":(\\d+)"))) ? std::stod(found[1]) : 0;
}

Speed ratio(double value, double dense_ms = kDenseMs) {
  Speed speed;
  speed.dense_ms = dense_ms;
  speed.compressed_ms = dense_ms / value;
  speed.ratio = {value, value, value};
  speed.faster = value > kFasterRatio;
  return speed;
}

// A factored layer takes 1 ms plus 0.002 ms for each element of its core.
double formula_ms(double out, double in) { return 1 + 0.002 * out * in; }
double formula_ms(const std::string& config) { return formula_ms(number_in(config, "rank_out"), number_in(config, "rank_in")); }

// The speed ratio of a network whose layers save `saved` milliseconds if timed alone.
using NetworkRatio = std::function<double(double saved)>;
NetworkRatio always(double value) {
  return [value](double) { return value; };
}
constexpr double kNetworkMs = 30;  // three layers and the time between them

class LatencyRanksTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Module> network() {
    auto made = std::make_unique<Sequential>();
    for (const auto& [name, out] : {std::pair("a", 64), std::pair("b", 64), std::pair("c", 32)}) {
      made->add_child(name, std::make_unique<Conv2d>(Conv2dConfig{.in = 64, .out = out, .kernel = {3, 3}, .padding = {1, 1}}));
    }
    initialize(*made, 1);
    return made;
  }

  static FactoriseConfig config(double speedup, std::int64_t multiple_of = 8) {
    FactoriseConfig config;
    config.layers = "*";
    config.ranks.latency = LatencyTarget{speedup};
    config.ranks.multiple_of = multiple_of;
    return config;
  }
  static VetoOptions quick() {
    VetoOptions options;
    options.only_faster = false;
    options.timing.sampling = Sampling::told_in(1);
    return options;
  }
  static Veto veto() { return Veto(quick()); }

  PassReport compress(double speedup) {
    FactorisePass pass(config(speedup));
    const Veto clock = veto();
    return run_pass(root_, pass, {1, 4, 4, 64}, &clock);
  }

  // The time saved by the layers now in the network, by the formula.
  double saved() const {
    double sum = 0;
    for (const Module::Child& child : root_->children()) {
      if (child.module->kind() != "conv2d") sum += kDenseMs - formula_ms(to_json(child.module->config()));
    }
    return sum;
  }

  // The clock's answers that a choice needs: layers' times follow the formula, the network's ratio follows `network`.
  DecisionMap asked(double speedup, const NetworkRatio& network) {
    DecisionMap known;
    for (std::size_t before = 1; before != known.size();) {
      before = known.size();
      DecisionMap forged = known;
      const auto forge = [&](const std::string& key, const std::string&) {
        if (key.starts_with("latency.layer")) forged[key] = to_text(ratio(kDenseMs / formula_ms(key)));
        if (key.starts_with("latency.network")) forged[key] = to_text(ratio(network(saved()), kNetworkMs));
      };
      const DecisionScope scope({.measure = true, .known = known, .on_measured = forge});
      FactorisePass pass(config(speedup));
      const Veto clock = veto();
      pass.prepare(root_, {1, 4, 4, 64}, {.veto = &clock});
      known = std::move(forged);
    }
    return known;
  }

  // The MACs at the smallest ranks, which apply if no clock may be read.
  static std::int64_t macs_at_smallest_ranks() {
    std::unique_ptr<Module> root = network();
    FactorisePass pass(config(1.5));
    return run_pass(root, pass, {1, 4, 4, 64}).after.macs;
  }

  std::unique_ptr<Module> root_ = network();
};

TEST_F(LatencyRanksTest, LayersOfOneShapeAreTimedOnceAndOnFewPoints) {
  std::map<std::string, std::size_t> timings;
  VetoOptions options = quick();
  options.before_timing = [&](const std::string& what) { ++timings[what]; };
  const Veto clock(options);
  const DecisionScope scope({.measure = true});
  FactorisePass pass(config(1.5));
  pass.prepare(root_, {1, 4, 4, 64}, {.veto = &clock});
  // Layers a, b and c. Only in training, which is not timed here, is the first layer special: it needs no gradient of its input.
  EXPECT_GT(timings["ranks of a"], 5u);
  EXPECT_LE(timings["ranks of a"], LatencyTable::kPoints);
  EXPECT_EQ(timings["ranks of b"], 0u) << "a has its shape";
  EXPECT_GT(timings["ranks of c"], 5u);
  EXPECT_LE(timings["ranks of c"], LatencyTable::kPoints);
}

// The times of all layers by the formula, as another process would answer.
DecisionMap by_formula(std::span<const RankTiming> timings) {
  DecisionMap times;
  for (const RankTiming& each : timings) {
    times[each.key] = to_text(ratio(kDenseMs / formula_ms(to_json(each.compressed()->config()))));
  }
  return times;
}

TEST_F(LatencyRanksTest, WhatOthersHaveTimedIsTakenAndRecorded) {
  std::vector<std::string> keys;
  std::map<std::string, std::size_t> timed_here;
  VetoOptions options = quick();
  options.before_timing = [&](const std::string& what) { ++timed_here[what]; };
  options.share_timings = [&](std::span<const RankTiming> timings, const TimingOptions& of_all, const RankClock& shared) {
    EXPECT_EQ(of_all.phase, Phase::inference);
    for (const RankTiming& each : timings) {
      keys.push_back(each.key);
      EXPECT_EQ(each.input, (Shape{1, 4, 4, 64}));
      EXPECT_TRUE(each.what == "ranks of a" || each.what == "ranks of c") << each.what << ": b has the shape of a";
    }
    shared.record(by_formula(timings));
  };
  const Veto clock(options);
  const auto layers_of = [](const DecisionMap& taken) {
    DecisionMap layers;
    for (const auto& [key, text] : taken) {
      if (key.starts_with("latency.layer")) layers[key] = text;
    }
    return layers;
  };
  DecisionMap layers;
  {
    const DecisionScope scope({.measure = true});
    FactorisePass pass(config(1.5));
    pass.prepare(root_, {1, 4, 4, 64}, {.veto = &clock});
    layers = layers_of(scope.taken());
  }
  EXPECT_EQ(timed_here.count("ranks of a") + timed_here.count("ranks of c"), 0U);
  EXPECT_EQ(layers.size(), keys.size());
  for (const std::string& key : keys) EXPECT_TRUE(layers.contains(key)) << key;
  EXPECT_EQ(layers, layers_of(asked(1.5, always(1.5)))) << "the times of the formula";

  keys.clear();
  const DecisionScope known({.measure = true, .known = layers});
  FactorisePass pass(config(1.5));
  pass.prepare(root_, {1, 4, 4, 64}, {.veto = &clock});
  EXPECT_TRUE(keys.empty()) << "what is known is not asked for";
}

// The other processes need not answer for all layers.
TEST_F(LatencyRanksTest, WhatOthersLeaveOutIsTimedHere) {
  std::size_t asked_for = 0, timed_here = 0;
  VetoOptions options = quick();
  options.before_timing = [&](const std::string& what) { timed_here += what.starts_with("ranks of ") ? 1 : 0; };
  options.share_timings = [&](std::span<const RankTiming> timings, const TimingOptions&, const RankClock& shared) {
    asked_for = timings.size();
    shared.record(by_formula(timings.subspan(3)));
    shared.record({{timings[0].key, shared.time(timings[0])}});
  };
  const Veto clock(options);
  const DecisionScope scope({.measure = true});
  FactorisePass pass(config(1.5));
  pass.prepare(root_, {1, 4, 4, 64}, {.veto = &clock});
  EXPECT_GT(asked_for, 10U);
  EXPECT_EQ(timed_here, 3U) << "one by the callback, two that were left out";
}

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// A machine's times outlive a command. Damaged entries are measured again, and so are those of a busy machine.
TEST_F(LatencyRanksTest, TimesAreKeptBetweenCommands) {
  const TemporaryFolder cache;
  double waited = 0, per_reading = 1;
  const HostClock host(steady_seconds, [&] { return waited += per_reading; });
  std::size_t warnings = 0;
  const testing::LogSinkScope sink([&](LogLevel, std::string_view message) {
    warnings += message.find("threads waited for a core in ") != std::string_view::npos ? 1 : 0;
  });
  const VariableScope environment("TESSERA_CACHE", cache.path().string());
  const auto timings_of_layers = [&](const std::string& kept_for) {
    std::size_t count = 0;
    VetoOptions options = quick();
    options.before_timing = [&](const std::string& what) { count += what.starts_with("ranks of ") ? 1 : 0; };
    options.kept_for = kept_for;
    const Veto clock(options);
    const DecisionScope scope({.measure = true});
    FactorisePass pass(config(1.5));
    pass.prepare(root_, {1, 4, 4, 64}, {.veto = &clock});
    return count;
  };
  const std::size_t first = timings_of_layers("this machine");
  EXPECT_GT(first, 10u);
  EXPECT_EQ(warnings, 1u) << "of the first timing of a pass";
  EXPECT_EQ(timings_of_layers("this machine"), first) << "none was quiet";
  EXPECT_EQ(warnings, 2u);
  per_reading = 0;
  EXPECT_EQ(timings_of_layers("this machine"), first);
  EXPECT_EQ(timings_of_layers("this machine"), 0u);
  EXPECT_EQ(timings_of_layers("another machine"), first);
  EXPECT_EQ(timings_of_layers(""), first) << "nothing is kept for a machine without a name";
  std::vector<std::filesystem::path> entries;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.path())) {
    if (entry.is_regular_file()) entries.push_back(entry.path());
  }
  for (const char* text : {"{", "\"1.0\"", "5"}) {
    for (const std::filesystem::path& entry : entries) write_file_atomically(real_vfs(), entry, text);
    EXPECT_EQ(timings_of_layers("this machine"), first) << text;
    EXPECT_EQ(timings_of_layers("this machine"), 0u) << "and is kept again";
  }
}

TEST_F(LatencyRanksTest, TimesBetweenThePointsAreBilinear) {
  const DecisionScope scope({.known = asked(1.5, always(1.5))});
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

// In the network layers save less time than alone. Timing the network at the fastest ranks shows how much less.
TEST_F(LatencyRanksTest, TheNetworkComesToWhatWasAsked) {
  const NetworkRatio network = [](double saved) { return kNetworkMs / (kNetworkMs - 0.8 * saved); };
  const DecisionScope scope({.known = asked(1.5, network)});
  const PassReport report = compress(1.5);
  ASSERT_TRUE(report.latency);
  EXPECT_TRUE(report.latency->reached());
  EXPECT_NEAR(report.latency->measured, 1.5, 0.05 * 1.5);
  EXPECT_NEAR(report.latency->measured, network(saved()), 1e-3) << "of the network that is left";
  EXPECT_EQ(report.latency->solutions, 1);
  EXPECT_NEAR(report.latency->predicted, 1.5, 0.05);
  EXPECT_GT(report.latency->fastest, 2);
  EXPECT_GT(report.after.macs, macs_at_smallest_ranks()) << "no more is cut than was asked";
  for (const LayerReport& row : report.layers) {
    if (row.ranks) {
      for (const Rank& rank : *row.ranks) EXPECT_TRUE(rank.value % 8 == 0) << row.path;
    }
    EXPECT_EQ(row.ranks_asked, "latency speedup 1.5");
  }
  EXPECT_NE(summary(report).find("Ranks by latency: asked 1.5x, predicted "), std::string::npos);
}

TEST_F(LatencyRanksTest, AMissIsRescaledUntilItIsClose) {
  const NetworkRatio network = [](double saved) { return kNetworkMs / (kNetworkMs - 0.35 * std::pow(saved, 1.3)); };
  const DecisionScope scope({.known = asked(1.5, network)});
  const PassReport report = compress(1.5);
  ASSERT_TRUE(report.latency);
  EXPECT_EQ(report.latency->solutions, 2);
  EXPECT_NEAR(report.latency->measured, 1.5, 0.05 * 1.5);
}

TEST_F(LatencyRanksTest, AMissIsRescaledTwiceAtMostAndTheNearestTaken) {
  const DecisionScope scope({.known = asked(1.5, always(1.7))});
  const PassReport report = compress(1.5);
  ASSERT_TRUE(report.latency);
  EXPECT_EQ(report.latency->solutions, 3);
  EXPECT_EQ(report.latency->measured, 1.7);
}

TEST_F(LatencyRanksTest, WhatCannotBeReachedSaysWhatCan) {
  const DecisionScope scope({.known = asked(3, always(1.2))});
  const PassReport report = compress(3);
  ASSERT_TRUE(report.latency);
  EXPECT_FALSE(report.latency->reached());
  EXPECT_NE(summary(report).find(
                "Ranks by latency: 3x cannot be reached; at the fastest ranks of each layer the network is 1.2x as fast"),
            std::string::npos)
      << summary(report);
}

TEST_F(LatencyRanksTest, WhatIsRecordedIsReplayedAndNeverMeasured) {
  const DecisionMap known = asked(1.5, always(1.5));
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
  asked(1.5, always(1.5));
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

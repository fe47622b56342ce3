#include "compress/timing/veto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/device/decisions.h"
#include "core/support/error.h"
#include "layers/sequential.h"
#include "tests/compress/timing/busy.h"
#include "tests/compress/timing/test_pass.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

Compressed everywhere(Microseconds time) {
  return [time](const std::string&) { return std::make_unique<Busy>("factored", time); };
}

class VetoTest : public ::testing::Test {
 protected:
  VetoTest() : root_(std::make_unique<Sequential>()) {}

  void add_dense(const std::string& name, Microseconds time) { root_->add_child(name, std::make_unique<Busy>("dense", time)); }

  PassReport run(const Compressed& compressed, bool only_faster = true) {
    TestPass pass(compressed);
    const Veto veto({.only_faster = only_faster, .batch = 3});
    return run_pass(root_, pass, {1, 4}, &veto);
  }
  std::string_view kind_of(const std::string& path) { return find_module(*root_, path).kind(); }

  PlannedClock clock_;
  std::unique_ptr<Module> root_;
};

TEST_F(VetoTest, AFasterLayerStaysWithItsTimes) {
  add_dense("a", kSlow);
  add_dense("b", kSlow);
  const PassReport report = run(everywhere(kQuick));
  EXPECT_EQ(kind_of("a"), "factored");
  for (const LayerReport& row : report.layers) {
    ASSERT_TRUE(row.speed);
    EXPECT_TRUE(row.speed->faster);
    EXPECT_NEAR(row.speed->dense_ms, 0.6, 1e-9);
    EXPECT_NEAR(row.speed->compressed_ms, 0.02, 1e-9);
    EXPECT_LE(row.speed->ratio.low, row.speed->ratio.median);
    EXPECT_LE(row.speed->ratio.median, row.speed->ratio.high);
    EXPECT_NEAR(row.speed->ratio.median, 30, 1e-6);
    EXPECT_EQ(row.decision, "factored");
    EXPECT_EQ(row.reason, "");
    ASSERT_TRUE(row.network_share);
    EXPECT_GT(*row.network_share, 0) << "how much, planted times say below";
  }
  ASSERT_TRUE(report.speed);
  EXPECT_TRUE(report.speed->faster);
  EXPECT_TRUE(report.timed_at.starts_with("batch 3, inference, ")) << report.timed_at;
}

// Inference times the copies that `folded` makes of dense and compressed forms. Here the compressed form is slow unless folded.
TEST_F(VetoTest, InferenceIsTimedOnFoldedCopies) {
  add_dense("a", kSlow);
  std::vector<std::string> copied;
  const auto quick_when_folded = [&](const Module& module) -> std::unique_ptr<Module> {
    const std::string kind(module.has_child("a") ? str("network of ", module.child("a").kind()) : std::string(module.kind()));
    copied.push_back(kind);
    return std::make_unique<Busy>("copy", kind.ends_with("factored") ? kQuick : kSlow);
  };
  TestPass pass(everywhere(2 * kSlow));
  const Veto veto({.batch = 3, .timing = {.folded = quick_when_folded}});
  std::vector<std::string> keys;
  const DecisionScope scope(
      {.measure = true, .on_measured = [&](const std::string& key, const std::string&) { keys.push_back(key); }});
  const PassReport report = run_pass(root_, pass, {1, 4}, &veto);
  EXPECT_TRUE(report.layers.at(0).speed->faster);
  EXPECT_TRUE(report.speed.value().faster);
  std::ranges::sort(copied);
  EXPECT_EQ(copied, (std::vector<std::string>{"dense", "factored", "network of dense", "network of factored"}));
  EXPECT_EQ(kind_of("a"), "factored") << "the copies are for the clock only";
  EXPECT_TRUE(report.timed_at.starts_with("batch 3, folded inference, ")) << report.timed_at;
  for (const std::string& key : keys) EXPECT_NE(key.find("folded inference"), std::string::npos) << key;
}

TEST_F(VetoTest, ALayerSlowedByABusyWaitGoesBack) {
  add_dense("a", kQuick);
  const Module* before = &find_module(*root_, "a");
  const PassReport report = run(everywhere(kSlow));
  EXPECT_EQ(&find_module(*root_, "a"), before);
  const LayerReport& row = report.layers.at(0);
  EXPECT_EQ(row.decision, "dense");
  EXPECT_EQ(row.kind_after, "dense");
  EXPECT_FALSE(row.ranks);
  EXPECT_EQ(row.relative_error, 0);
  EXPECT_TRUE(row.reason.starts_with("not faster at batch 3, inference, ")) << row.reason;
  EXPECT_FALSE(report.speed) << "nothing is left to time";
}

// Slow in every second dozen of its first calls, as if disturbed by another program, then quick.
class QuickInTheEnd final : public Planned {
 public:
  QuickInTheEnd() : Planned("factored") {}
  Value config() const override { return Value::map(); }
  static constexpr int kUnsteady = 60, kDozen = 12;

 private:
  Microseconds time_of(const Var&, const Context&) const override {
    const int call = calls_++;
    return call < kUnsteady && call / kDozen % 2 == 0 ? 2 * kSlow : kQuick;
  }
  mutable int calls_ = 0;
};

TEST_F(VetoTest, WhatIsUndecidedIsTimedAgain) {
  add_dense("a", kSlow);
  const std::unique_ptr<Module> dense = std::make_unique<Busy>("dense", kSlow);
  QuickInTheEnd unsteady;
  const Shape input{1, 4};
  EXPECT_TRUE(is_undecided(time_layer(*dense, unsteady, input, /*input_gradient=*/false, {})));
  const PassReport report = run([](const std::string&) { return std::make_unique<QuickInTheEnd>(); });
  EXPECT_EQ(report.layers.at(0).decision, "factored");
  EXPECT_GT(report.layers.at(0).speed->ratio.low, 2) << "the last rounds tell";
}

TEST_F(VetoTest, AStopIsAskedForBeforeEachTiming) {
  add_dense("a", kSlow);
  std::vector<std::string> told;
  TestPass pass([](const std::string&) { return std::make_unique<QuickInTheEnd>(); });
  const Veto veto({.batch = 3, .before_timing = [&](const std::string& what) { told.push_back(what); }});
  run_pass(root_, pass, {1, 4}, &veto);
  EXPECT_GT(std::ranges::count(told, "a"), 1);
  EXPECT_EQ(std::ranges::count(told, "the network"), 1) << "decided by one";
}

TEST_F(VetoTest, KeepAlwaysLeavesItAndMarksIt) {
  add_dense("a", kQuick);
  const PassReport report = run(everywhere(kSlow), /*only_faster=*/false);
  EXPECT_EQ(kind_of("a"), "factored");
  const LayerReport& row = report.layers.at(0);
  EXPECT_EQ(row.decision, "factored");
  EXPECT_TRUE(row.ranks);
  EXPECT_TRUE(row.reason.starts_with("not faster at batch 3, inference, ")) << row.reason;
  ASSERT_TRUE(report.speed);
  EXPECT_FALSE(report.speed->faster);
}

// Each layer is faster alone. Inside the network "a" is slow, and so is the network, until its worst layer goes back.
TEST_F(VetoTest, WhileTheNetworkIsNotFasterItsWorstLayerGoesBack) {
  add_dense("a", kSlow / 2);
  add_dense("b", kSlow);
  const PassReport report = run([](const std::string& path) -> std::unique_ptr<Module> {
    if (path == "b") return std::make_unique<Busy>("factored", kQuick);
    return std::make_unique<Busy>("factored", kQuick, 4 * kSlow);
  });
  EXPECT_EQ(kind_of("a"), "dense");
  EXPECT_EQ(kind_of("b"), "factored");
  EXPECT_EQ(report.layers.at(0).decision, "dense");
  EXPECT_TRUE(report.layers.at(0).speed->faster) << "its own time stays on record";
  EXPECT_TRUE(report.layers.at(0).reason.starts_with("the network is not faster with it at batch 3, "))
      << report.layers.at(0).reason;
  EXPECT_EQ(report.layers.at(1).decision, "factored");
  ASSERT_TRUE(report.speed);
  EXPECT_TRUE(report.speed->faster);
}

TEST_F(VetoTest, ANetworkThatIsNeverFasterEndsDense) {
  add_dense("a", kSlow);
  add_dense("b", kSlow);
  const PassReport report = run([](const std::string&) { return std::make_unique<Busy>("factored", kQuick, 4 * kSlow); });
  EXPECT_EQ(kind_of("a"), "dense");
  EXPECT_EQ(kind_of("b"), "dense");
  EXPECT_FALSE(report.speed);
}

TEST_F(VetoTest, TimesAreRecordedBeforeTheyAreUsedAndReplayed) {
  add_dense("a", kSlow);
  DecisionMap recorded;
  std::string kind_when_recorded;
  PassReport measured;
  {
    const DecisionScope scope({.measure = true, .on_measured = [&](const std::string& key, const std::string& choice) {
                                 if (recorded.empty()) kind_when_recorded = kind_of("a");
                                 recorded[key] = choice;
                               }});
    measured = run(everywhere(kQuick));
  }
  EXPECT_EQ(kind_when_recorded, "dense");
  ASSERT_EQ(recorded.size(), 2u) << "the layer, then the network";
  root_->replace_child("a", std::make_unique<Busy>("dense", kSlow));
  Busy::calls = 0;
  const DecisionScope scope({.measure = false, .known = recorded});
  const PassReport replayed = run(everywhere(kQuick));
  EXPECT_EQ(Busy::calls, 0) << "nothing is measured again";
  EXPECT_EQ(to_text(*replayed.layers.at(0).speed), to_text(*measured.layers.at(0).speed));
  EXPECT_EQ(replayed.layers.at(0).network_share, measured.layers.at(0).network_share);
  EXPECT_EQ(to_text(*replayed.speed), to_text(*measured.speed));
}

TEST_F(VetoTest, ARecordedWordDecides) {
  add_dense("a", kSlow);
  DecisionMap known;
  {
    const DecisionScope scope({.measure = true, .on_measured = [&](const std::string& key, const std::string&) {
                                 known[key] = "not-faster dense_ms 1 compressed_ms 1 ratio 1 low 1 high 1";
                               }});
    run(everywhere(kQuick));
  }
  root_->replace_child("a", std::make_unique<Busy>("dense", kSlow));
  const DecisionScope scope({.measure = false, .known = known});
  EXPECT_EQ(run(everywhere(kQuick)).layers.at(0).decision, "dense");
}

TEST_F(VetoTest, ALayersShareIsItsDenseTimeOverTheDenseNetworks) {
  add_dense("a", kSlow);
  add_dense("b", kSlow / 2);
  DecisionMap known;
  {
    const DecisionScope scope({.measure = true, .on_measured = [&](const std::string& key, const std::string&) {
                                 const bool is_a = key.find(R"(dense{"alone":600,)") != std::string::npos;
                                 const char* const ms = key.starts_with("keep.network ") ? "16" : is_a ? "8" : "2";
                                 known[key] = str("faster dense_ms ", ms, " compressed_ms 1 ratio 2 low 1.9 high 2.1");
                               }});
    run(everywhere(kQuick), /*only_faster=*/false);
  }
  ASSERT_EQ(known.size(), 3u) << "two layers, then the network";
  root_->replace_child("a", std::make_unique<Busy>("dense", kSlow));
  root_->replace_child("b", std::make_unique<Busy>("dense", kSlow / 2));
  const DecisionScope scope({.measure = false, .known = known});
  const PassReport report = run(everywhere(kQuick));
  EXPECT_EQ(report.layers.at(0).network_share, 0.5);
  EXPECT_EQ(report.layers.at(1).network_share, 0.125);
}

TEST_F(VetoTest, WithoutAClockFasterIsAnErrorAndAlwaysIsUntimed) {
  add_dense("a", kSlow);
  const DecisionScope fixed({.measure = false});
  try {
    run(everywhere(kQuick));
    FAIL() << "decided without a clock";
  } catch (const ConfigError& error) {
    const std::string advice = "replay a run's with train --decisions FILE, or set keep: always";
    EXPECT_NE(std::string(error.what()).find(advice), std::string::npos) << error.what();
  }
  EXPECT_EQ(kind_of("a"), "dense");
  const PassReport report = run(everywhere(kQuick), /*only_faster=*/false);
  EXPECT_EQ(kind_of("a"), "factored");
  EXPECT_FALSE(report.layers.at(0).speed);
  EXPECT_FALSE(report.speed);
}

TEST_F(VetoTest, ARecordThatIsNoTimingIsNamed) {
  add_dense("a", kSlow);
  DecisionMap known;
  {
    const auto other = [&](const std::string& key, const std::string&) { known[key] = "blocked"; };
    const DecisionScope scope({.measure = true, .on_measured = other});
    run(everywhere(kQuick));
  }
  root_->replace_child("a", std::make_unique<Busy>("dense", kSlow));
  const DecisionScope scope({.measure = false, .known = known});
  const std::string message = message_of<ConfigError>([&] { run(everywhere(kQuick)); });
  EXPECT_TRUE(message.starts_with("decisions: keep.layer factored{")) << message;
  EXPECT_NE(message.find(": 'blocked' is not a timing; expected '"), std::string::npos) << message;
}

TEST_F(VetoTest, AnErrorWhileTheNetworkIsTimedLeavesTheCompressedTree) {
  add_dense("a", kSlow);
  int count = 0;
  const DecisionScope scope({.measure = true, .on_measured = [&](const std::string&, const std::string&) {
                               if (++count == 2) throw IoError("the disk is full");
                             }});
  EXPECT_THROW(run(everywhere(kQuick)), IoError);
  EXPECT_EQ(kind_of("a"), "factored");
}

}  // namespace
}  // namespace tessera::testing

// The veto on networks that write text: decode as well as inference and training.
#include <gtest/gtest.h>

#include <map>

#include "compress/timing/veto.h"
#include "core/cpu/machine_memory.h"
#include "core/device/decisions.h"
#include "core/nn/attention_cache.h"
#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/embedding.h"
#include "layers/self_attention.h"
#include "layers/sequential.h"
#include "tests/compress/timing/busy.h"
#include "tests/compress/timing/test_pass.h"

namespace tessera::testing {
namespace {

constexpr std::int64_t kWidth = 12;  // width of the embedding: queries, keys and values of a head of 4
const Shape kTokens{2, 5};

// The input of a layer in decode.
struct Decoded {
  Shape x;
  std::int64_t length = 0;  // positions in the cache
  bool operator==(const Decoded&) const = default;
};

// Takes the planned time in each phase, and records its inputs in decode.
class Phased final : public Planned {
 public:
  using Times = std::map<Phase, Microseconds>;
  Phased(std::string kind, Times times) : Planned(std::move(kind)), times_(std::move(times)) {}
  Value config() const override { return Value::map(); }

  static inline std::vector<Decoded> decoded = {};

 private:
  Microseconds time_of(const Var& x, const Context& context) const override {
    const Phase phase = context.training ? Phase::training : context.cache != nullptr ? Phase::decode : Phase::inference;
    if (phase == Phase::decode) decoded.push_back({x.shape(), context.cache->length()});
    return times_.at(phase);
  }

  Times times_;
};

std::unique_ptr<Module> dense() {
  return std::make_unique<Phased>("dense",
                                  Phased::Times{{Phase::inference, kSlow}, {Phase::decode, kSlow}, {Phase::training, kSlow}});
}

// Faster than the dense layer in decode alone.
Compressed quick_in_decode() {
  return [](const std::string&) {
    return std::make_unique<Phased>(
        "factored", Phased::Times{{Phase::inference, 2 * kSlow}, {Phase::decode, kQuick}, {Phase::training, 2 * kSlow}});
  };
}

class VetoPhases : public ::testing::Test {
 protected:
  VetoPhases() : root_(std::make_unique<Sequential>()) {
    root_->add_child("tokens", std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = 7, .width = kWidth}));
    root_->add_child("layer", dense());
    root_->add_child("attention", std::make_unique<SelfAttention>(SelfAttentionConfig{.heads = 1, .causal = true}));
    initialize(*root_, 1);
    Phased::calls = 0;
    Phased::decoded.clear();
  }

  PassReport run(const VetoOptions& options) {
    root_->replace_child("layer", dense());
    TestPass pass(quick_in_decode());
    const Veto veto(options);
    return run_pass(root_, pass, kTokens, &veto);
  }
  static VetoOptions decode() {
    VetoOptions options{.batch = 3};
    options.timing.phase = Phase::decode;
    options.timing.sampling = Sampling::told_in(20);
    return options;
  }
  // The other phases are only reported.
  static VetoOptions decode_and_others() {
    VetoOptions options = decode();
    options.other_phases = {{Phase::inference, 4}, {Phase::training, 2}};
    return options;
  }

  PlannedClock clock_;
  std::unique_ptr<Module> root_;
};

TEST_F(VetoPhases, DecodeIsOneNewPositionBehindTheOthers) {
  std::vector<std::string> keys;
  const DecisionScope scope(
      {.measure = true, .on_measured = [&](const std::string& key, const std::string&) { keys.push_back(key); }});
  const PassReport report = run(decode());
  for (const Decoded& each : Phased::decoded) {
    const bool filling = each == Decoded{{3, 4, kWidth}, 0};
    EXPECT_TRUE(filling || (each == Decoded{{3, 1, kWidth}, 4})) << each.x << " behind " << each.length;
  }
  ASSERT_EQ(keys.size(), 2u) << "the layer, then the network";
  EXPECT_TRUE(keys[0].starts_with("keep.layer factored")) << keys[0];
  EXPECT_NE(keys[0].find(" input [3, 5, 12] batch 3, decode at length 5, "), std::string::npos) << keys[0];
  EXPECT_NE(keys[1].find(" input [3, 5] batch 3, decode at length 5, "), std::string::npos) << keys[1];
  EXPECT_TRUE(report.timed_at.starts_with("batch 3, decode at length 5, ")) << report.timed_at;
  EXPECT_EQ(report.layers.at(0).phase, "decode");
  EXPECT_TRUE(report.other_phases.empty());
}

// The table of tokens exceeds every cache, so that for each token a layer is read from memory as well.
TEST_F(VetoPhases, LayersOfALargeNetworkAreTimedFromMemoryInDecodeAlone) {
  const auto key_of_layer = [&](Phase phase) {
    std::string first;
    const DecisionScope scope({.measure = true, .on_measured = [&](const std::string& key, const std::string&) {
                                 if (first.empty()) first = key;
                               }});
    VetoOptions options = decode();
    options.timing.phase = phase;
    run(options);
    EXPECT_TRUE(first.starts_with("keep.layer factored")) << first;
    return first;
  };
  EXPECT_EQ(key_of_layer(Phase::decode).find("from memory"), std::string::npos) << "of a network that the caches hold";
  const auto rows = static_cast<std::int64_t>(std::max(cpu::last_cache(), std::size_t{8} << 20) / (kWidth * sizeof(float)));
  root_->replace_child("tokens", std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = rows + 1, .width = kWidth}));
  const std::string key = key_of_layer(Phase::decode);
  EXPECT_NE(key.find(" input [3, 5, 12] from memory batch 3, decode"), std::string::npos) << key;
  EXPECT_EQ(key_of_layer(Phase::inference).find("from memory"), std::string::npos);

  TimingOptions of_half{.phase = Phase::decode, .compute = DType::bf16};
  EXPECT_FALSE(layers_from_memory(*root_, of_half)) << "in bf16 they take half of the bytes";
}

TEST_F(VetoPhases, SequencesOfDecodeMayHaveAnotherLength) {
  VetoOptions options = decode();
  options.length = 1;
  const PassReport report = run(options);
  for (const Decoded& each : Phased::decoded) EXPECT_EQ(each, (Decoded{{3, 1, kWidth}, 0}));
  EXPECT_TRUE(report.timed_at.starts_with("batch 3, decode at length 1, ")) << report.timed_at;
}

TEST_F(VetoPhases, ThePhaseDecides) {
  const PassReport stays = run(decode());
  EXPECT_EQ(stays.layers.at(0).decision, "factored") << stays.layers.at(0).reason;
  EXPECT_TRUE(stays.speed.value().faster);
  for (const Phase phase : {Phase::inference, Phase::training}) {
    VetoOptions options = decode();
    options.timing.phase = phase;
    const PassReport back = run(options);
    EXPECT_EQ(back.layers.at(0).decision, "dense");
    EXPECT_EQ(back.layers.at(0).phase, name_of(phase));
    EXPECT_NE(back.layers.at(0).reason.find(str(name_of(phase), ", ")), std::string::npos) << back.layers.at(0).reason;
  }
}

TEST_F(VetoPhases, TheOtherPhasesAreToldAndDecideNothing) {
  std::vector<std::string> told;
  VetoOptions options = decode_and_others();
  options.before_timing = [&](const std::string& what) { told.push_back(what); };
  const PassReport report = run(options);
  EXPECT_EQ(report.layers.at(0).decision, "factored");
  ASSERT_EQ(report.other_phases.size(), 2u);
  EXPECT_EQ(report.other_phases[0].phase, "inference");
  EXPECT_TRUE(report.other_phases[0].timed_at.starts_with("batch 4, inference, ")) << report.other_phases[0].timed_at;
  EXPECT_EQ(report.other_phases[1].phase, "training");
  EXPECT_TRUE(report.other_phases[1].timed_at.starts_with("batch 2, training, ")) << report.other_phases[1].timed_at;
  for (const PhaseSpeed& other : report.other_phases) {
    EXPECT_FALSE(other.speed.faster) << other.phase;
    EXPECT_LT(other.speed.ratio.median, 1) << other.phase;
  }
  EXPECT_EQ(told, (std::vector<std::string>{"layer", "the network", "the network in inference", "the network in training"}));
  for (const NamedParameter& parameter : named_parameters(*root_)) EXPECT_FALSE(parameter.parameter->grad().defined());
}

TEST_F(VetoPhases, WhatIsToldIsRecordedAndReplayed) {
  DecisionMap recorded;
  PassReport measured;
  {
    const DecisionScope scope(
        {.measure = true, .on_measured = [&](const std::string& key, const std::string& choice) { recorded[key] = choice; }});
    measured = run(decode_and_others());
  }
  ASSERT_EQ(recorded.size(), 4u) << "the layer, and the network in three phases";
  Phased::calls = 0;
  {
    const DecisionScope scope({.measure = false, .known = recorded});
    const PassReport replayed = run(decode_and_others());
    EXPECT_EQ(Phased::calls, 0) << "nothing is measured again";
    ASSERT_EQ(replayed.other_phases.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(to_text(replayed.other_phases[i].speed), to_text(measured.other_phases[i].speed));
      EXPECT_EQ(replayed.other_phases[i].timed_at, measured.other_phases[i].timed_at);
    }
  }
  EXPECT_EQ(std::erase_if(recorded, [](const auto& entry) { return entry.first.starts_with(kSpeedDecision); }), 2u);
  const DecisionScope scope({.measure = false, .known = recorded});
  const PassReport untold = run(decode_and_others());
  EXPECT_EQ(untold.layers.at(0).decision, "factored");
  EXPECT_TRUE(untold.other_phases.empty()) << "no clock may be asked";
}

TEST_F(VetoPhases, ShortMemoryLeavesAPhaseOut) {
  VetoOptions options = decode_and_others();
  options.before_timing = [](const std::string& what) {
    if (what == "the network in training") throw OutOfMemoryError("no room");
  };
  int ended = 0;
  options.after_timing = [&] { ++ended; };
  const PassReport report = run(options);
  ASSERT_EQ(report.other_phases.size(), 1u);
  EXPECT_EQ(report.other_phases[0].phase, "inference");
  EXPECT_EQ(ended, 4);
}

TEST_F(VetoPhases, ANetworkWithoutALayerLeftIsNotTold) {
  VetoOptions options = decode_and_others();
  options.timing.phase = Phase::training;
  const PassReport report = run(options);
  EXPECT_EQ(report.layers.at(0).decision, "dense");
  EXPECT_TRUE(report.other_phases.empty());
}

TEST_F(VetoPhases, ATransformerThatWritesNoTextDoesNotDecode) {
  root_->replace_child("attention", std::make_unique<SelfAttention>(SelfAttentionConfig{.heads = 1}));
  VetoOptions options{.only_faster = false, .batch = 3};
  options.timing.sampling = Sampling::told_in(20);
  options.other_phases = {{Phase::decode, 1}, {Phase::training, 2}};
  const PassReport report = run(options);
  EXPECT_TRUE(report.speed.has_value());
  ASSERT_EQ(report.other_phases.size(), 1u);
  EXPECT_EQ(report.other_phases[0].phase, "training");
}

TEST_F(VetoPhases, ANetworkWithoutAttentionHasOnePhase) {
  root_->replace_child("attention", std::make_unique<Relu>());
  VetoOptions options{.only_faster = false, .batch = 3};
  options.timing.sampling = Sampling::told_in(20);
  options.other_phases = {{Phase::decode, 1}, {Phase::training, 2}};
  const PassReport report = run(options);
  EXPECT_TRUE(report.speed.has_value());
  EXPECT_TRUE(report.other_phases.empty());
}

}  // namespace
}  // namespace tessera::testing

// The timings that decide the ranks of a factorisation, sent from rank 0 of the run to another process and back.
#include "train/run/rank_timings.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/svd_linear.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

// `count` timings of a dense layer, one for each rank from 1.
std::vector<RankTiming> timings_of(Module& dense, const Shape& input, int count, const std::string& what) {
  std::vector<RankTiming> timings;
  for (int i = 0; i < count; ++i) {
    timings.push_back({.what = what,
                       .dense = &dense,
                       .compressed = [rank = i + 1]() -> std::unique_ptr<Module> {
                         return std::make_unique<SvdLinear>(SvdLinearConfig{.in = 20, .out = 30, .rank = rank});
                       },
                       .input = input,
                       .key = str(what, ' ', i)});
  }
  return timings;
}

std::vector<RankTiming> joined(std::vector<RankTiming> all, const std::vector<RankTiming>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(TimingRounds, TheLayersThatTakeLongestGoFirstOneToARankInARound) {
  Linear small(LinearConfig{.in = 20, .out = 30}), large(LinearConfig{.in = 200, .out = 300}),
      middle(LinearConfig{.in = 100, .out = 100});
  const std::vector<RankTiming> all =
      joined(joined(timings_of(small, {2, 20}, 3, "small"), timings_of(large, {2, 200}, 2, "large")),
             timings_of(middle, {2, 100}, 2, "middle"));
  const std::vector<int> timers{0, 3};
  const std::vector<std::vector<TimingShare>> rounds = timing_rounds(all, timers);
  ASSERT_EQ(rounds.size(), 2U);
  ASSERT_EQ(rounds[0].size(), 2U);
  EXPECT_EQ(rounds[0][0].rank, 0);
  EXPECT_EQ(rounds[0][0].timings.front().what, "large");
  EXPECT_EQ(rounds[0][1].rank, 3);
  EXPECT_EQ(rounds[0][1].timings.front().what, "middle");
  ASSERT_EQ(rounds[1].size(), 1U);
  EXPECT_EQ(rounds[1][0].rank, 0);
  EXPECT_EQ(rounds[1][0].timings.size(), 3U) << "all timings of a layer together";
  EXPECT_TRUE(timing_rounds({}, timers).empty());
}

TEST(RoundOfTimings, ARankAnswersForItsShare) {
  Sequential network;  // gives the layer a path
  network.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 20, .out = 30}));
  initialize(network, 1);
  Module& dense = network.child("fc");
  dense.parameter("bias").set_trainable(false);
  const std::vector<TimingShare> round{{0, timings_of(dense, {4, 20}, 1, "mine")}, {1, timings_of(dense, {4, 20}, 3, "yours")}};
  for (const Phase phase : {Phase::inference, Phase::training}) {
    TimingOptions options;
    options.phase = phase;
    const std::string told = encode_round(round, options);
    EXPECT_EQ(told.find("mine"), std::string::npos) << "rank 0 takes its own without being told";
    const Value timing = parse_json(told, "round").at("shares").as_list().at(0).at("timings").as_list().at(0);
    EXPECT_EQ(to_json(timing.at("dense").at("frozen")), "[1]") << "the bias, behind the weight";
    EXPECT_EQ(to_json(timing.at("compressed").at("frozen")), "[]");
    RankLog log;
    const DecisionMap times = read_answer(answer_to_round(told, 1, {}, log), 1);
    ASSERT_EQ(times.size(), 3U);
    for (int i = 0; i < 3; ++i) EXPECT_GT(speed_from(times.at(str("yours ", i))).ratio.median, 0);
    EXPECT_TRUE(read_answer(answer_to_round(told, 2, {}, log), 2).empty()) << "a rank without a share";
  }
  EXPECT_EQ(read_answer(encode_answer({{"a", "b"}}), 0), (DecisionMap{{"a", "b"}}));
}

TEST(RoundOfTimings, WhatARankFailsOfIsTold) {
  Linear dense(LinearConfig{.in = 20, .out = 30});
  const std::vector<TimingShare> round{{1, timings_of(dense, {4, 21}, 1, "yours")}};
  RankLog log;
  const std::string answer = answer_to_round(encode_round(round, {}), 1, {}, log);
  const std::string message = message_of<Error>([&] { read_answer(answer, 1); });
  EXPECT_TRUE(message.starts_with("rank 1: ")) << message;
  EXPECT_NE(message.find("[4, 21]"), std::string::npos) << message;
  EXPECT_EQ(message_of<OutOfMemoryError>([] { read_answer(R"({"error": "no memory", "kind": "memory"})", 3); }),
            "rank 3: no memory");
  EXPECT_EQ(message_of<ConfigError>([] { read_answer(R"({"error": "a key", "kind": "config"})", 2); }), "rank 2: a key");
}

}  // namespace
}  // namespace tessera

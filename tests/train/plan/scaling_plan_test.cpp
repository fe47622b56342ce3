#include "train/plan/scaling_plan.h"

#include <gtest/gtest.h>

#include <utility>

#include "core/support/error.h"
#include "tests/support/message_of.h"
#include "train/config/yaml.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/rank_messages.h"

namespace tessera {
namespace {

constexpr Interconnect kBetween{.latency = 1e-5, .bandwidth = 1e9};

TEST(ScalingPlan, AnExchangeTakesTwoMessagesOfAPieceForEachOtherRank) {
  const std::vector<GradientMessage> one{{4'000'000}}, two{{4'000'000}, {1'000'000}};
  EXPECT_EQ(exchange_seconds(one, 1, kBetween), 0);
  // The ranks first agree: one message up and one down a tree of one level.
  EXPECT_DOUBLE_EQ(exchange_seconds(one, 2, kBetween), 2e-5 + 2 * (1e-5 + 2e-3));
  EXPECT_DOUBLE_EQ(exchange_seconds(one, 4, kBetween), 4e-5 + 6 * (1e-5 + 1e-3));
  EXPECT_DOUBLE_EQ(exchange_seconds(two, 2, kBetween), exchange_seconds(one, 2, kBetween) + 2e-5 + 2 * (1e-5 + 5e-4));
}

TEST(ScalingPlan, ATreeTakesWholeMessagesUpAndDown) {
  const std::vector<GradientMessage> one{{4'000'000}};
  EXPECT_EQ(tree_seconds(one, 1, kBetween), 0);
  EXPECT_DOUBLE_EQ(tree_seconds(one, 8, kBetween), 6e-5 + 6 * (1e-5 + 4e-3));
  EXPECT_DOUBLE_EQ(tree_seconds(one, 5, kBetween), tree_seconds(one, 8, kBetween));
  const std::vector<GradientMessage> small{{8}};
  EXPECT_LT(tree_seconds(small, 4096, kBetween), exchange_seconds(small, 4096, kBetween)) << "few steps of little";
}

// A message of 4 MB between two ranks takes 4.04 ms, agreement included.
TEST(ScalingPlan, WhatPassesDuringBackwardIsNotExposed) {
  const auto exposed = [](double first, double second) {
    return exposed_seconds(std::vector<GradientMessage>{{4'000'000, first}, {4'000'000, second}}, 2, kBetween);
  };
  const double message = exchange_seconds(std::vector<GradientMessage>{{4'000'000}}, 2, kBetween);
  EXPECT_NEAR(exposed(1, 2), message, 1e-12) << "the first is through";
  EXPECT_NEAR(exposed(1, 1), 2 * message, 1e-12);
  EXPECT_NEAR(exposed(1, 1 + message / 4), 1.75 * message, 1e-12) << "the second waits for the first";
  EXPECT_EQ(exposed_seconds({}, 2, kBetween), 0);
  const std::vector<GradientMessage> waited{{4'000'000, 1}, {4'000'000, 2, true}, {4'000'000, 3, true}};
  EXPECT_NEAR(exposed_seconds(waited, 2, kBetween), 3 * message, 1e-12);
  EXPECT_EQ(exposed_seconds(std::vector<GradientMessage>{{4'000'000, 1}}, 1, kBetween), 0);
}

Experiment experiment(const std::string& rest = "stages: [{name: dense, train: 2s}]\n", const std::string& more = "",
                      const std::string& data = "count: 80, batch: 24") {
  return parse_experiment(
      parse_yaml("version: 1\nname: x\ndeterministic: true\nthreads: {compute: 1, loader: 0}\n"
                 "data: {name: glyphs, test_count: 10, " +
                     data +
                     "}\n"
                     "model: {name: layers, layers: [flatten, {linear: {out: 10, name: fc}}" +
                     more + "]}\n" + rest,
                 "x.yaml"));
}

TEST(ScalingPlan, HasARowForEachPowerOfTwoThatSharesTheBatch) {
  const ScalingPlan plan = plan_scaling(experiment(), {6}, kBetween);
  EXPECT_EQ(plan.stage, "dense");
  EXPECT_EQ(plan.gradient_bytes, 4 * (784 * 10 + 10));
  EXPECT_EQ(plan.messages, 1);
  std::vector<std::int64_t> ranks, samples;
  for (const ScalingRow& row : plan.rows) {
    ranks.push_back(row.ranks);
    samples.push_back(row.samples);
    EXPECT_GT(row.compute_ms, 0);
    EXPECT_DOUBLE_EQ(row.speedup, plan.rows.front().step_ms() / row.step_ms());
    EXPECT_DOUBLE_EQ(row.efficiency(), row.speedup / static_cast<double>(row.ranks));
  }
  EXPECT_EQ(ranks, (std::vector<std::int64_t>{1, 2, 4, 6}));
  EXPECT_EQ(samples, (std::vector<std::int64_t>{24, 12, 6, 4}));
  EXPECT_EQ(plan.rows.front().exchange_ms, 0);
  EXPECT_DOUBLE_EQ(plan.rows[1].exchange_ms, 1e3 * exchange_seconds(std::vector<GradientMessage>{{31400}}, 2, kBetween));
  EXPECT_NEAR(plan.rows[1].exposed_ms, plan.rows[1].exchange_ms, 1e-9) << "of one message, which is ready last";
}

// The last batch of an epoch has 6 of the 30 samples.
TEST(ScalingPlan, ASmallerLastBatchIsSharedToo) {
  const std::string stages = "stages: [{name: dense, train: 2s}]\n", data = "count: 30, batch: 24, drop_last: false";
  std::vector<std::int64_t> ranks;
  for (const ScalingRow& row : plan_scaling(experiment(stages, "", data), {6}, kBetween).rows) ranks.push_back(row.ranks);
  EXPECT_EQ(ranks, (std::vector<std::int64_t>{1, 2, 6}));
  EXPECT_EQ(message_of<ConfigError>([&] { plan_scaling(experiment(stages, "", data), {4}, kBetween); }),
            "--ranks: data.drop_last is false, and the last batch of an epoch has 6 samples; 4 ranks cannot share it equally");
}

TEST(ScalingPlan, TakesTheFirstStageThatTrains) {
  const Experiment factored = experiment(
      "stages: [{name: small, factorise: {keep: always, layers: fc, format: svd, ranks: {rank: 3}}}, {name: tuned, train: "
      "2s}]\n");
  const ScalingPlan plan = plan_scaling(factored, {2}, kBetween);
  EXPECT_EQ(plan.stage, "tuned");
  EXPECT_EQ(plan.gradient_bytes, 4 * (3 * (784 + 10) + 10)) << "of the factored layer";
}

// ADMM's projections are planned for ranks that do not exist here. PowerSGD sends factors in place of gradients.
TEST(ScalingPlan, CountsStagesOfAdmmAndCompressedGradients) {
  const Experiment held = experiment(
      "stages: [{name: held, train: 2s, admm: {keep: always, layers: 'fc*', format: svd, ranks: {rank: 3}, update: 1s}}]\n",
      ", relu, {linear: {out: 20, name: fc2}}, relu, {linear: {out: 10, name: fc3}}");
  EXPECT_EQ(plan_scaling(held, {4}, kBetween).rows.size(), 3u);
  const ScalingPlan compressed =
      plan_scaling(experiment("stages: [{name: dense, train: 2s}]\npower_sgd: {rank: 2}\n"), {2}, kBetween);
  EXPECT_EQ(compressed.gradient_bytes, 4 * (2 * (784 + 10) + 10));
  EXPECT_EQ(compressed.messages, 3) << "the bias, and two factors";
}

TEST(ScalingPlan, AMachineHasAsManyRanksAsItHasProcessorsFor) {
  EXPECT_EQ(ranks_of_a_machine(8, 1, 16), 8);
  EXPECT_EQ(ranks_of_a_machine(8, 4, 16), 4);
  EXPECT_EQ(ranks_of_a_machine(8, 5, 16), 3);
  EXPECT_EQ(ranks_of_a_machine(8, 32, 16), 1);
  EXPECT_EQ(ranks_of_a_machine(1, 1, 16), 1);
}

// Takes the neighbours' steps in this process instead of in other processes.
class StepsHere final : public Neighbours {
 public:
  struct Start {
    std::int64_t count, threads, ranks;
    bool operator==(const Start&) const = default;
  };

  explicit StepsHere(Experiment experiment) : experiment_(std::move(experiment)) {}
  void start(std::int64_t count, const ExperimentConfig& config, std::int64_t ranks, const std::string& begin) override {
    EXPECT_FALSE(std::exchange(running_, true));
    started.push_back({count, config.threads.compute, ranks});
    choices = recorded_decisions(decode_checkpoint(begin).manifest);
    experiment_.config = config;
    int steps = 0;
    take_steps_beside(experiment_, ranks, begin, [&] { return ++steps < 4; });
    EXPECT_EQ(steps, 4) << "of a stage that has 2";
  }
  void stop() override { EXPECT_TRUE(std::exchange(running_, false)); }

  std::vector<Start> started;
  DecisionMap choices;

 private:
  Experiment experiment_;
  bool running_ = false;
};

TEST(ScalingPlan, TimesEachShareBesideTheOtherRanksOfTheMachine) {
  StepsHere neighbours(experiment());
  std::vector<StepsHere::Start> expected;
  for (const ScalingRow& row : plan_scaling(experiment(), {6}, kBetween, &neighbours).rows) {
    EXPECT_EQ(row.together, ranks_of_a_machine(row.ranks, 1, resolve_compute_threads(0)));
    if (row.together > 1) expected.push_back({row.together - 1, 1, row.ranks});
  }
  EXPECT_EQ(neighbours.started, expected);
  for (const ScalingRow& row : plan_scaling(experiment(), {6}, kBetween).rows) EXPECT_EQ(row.together, 1);
  for (const ScalingRow& row : plan_scaling(experiment(), {6, 1}, kBetween, &neighbours).rows) EXPECT_EQ(row.together, 1);
}

// If threads.compute is not set, the ranks of a machine share its processors.
TEST(ScalingPlan, AMachineHasTheRanksThatItIsSaidToHave) {
  const std::int64_t processors = resolve_compute_threads(0);
  Experiment automatic = experiment();
  automatic.config.threads.compute = 0;
  StepsHere neighbours(automatic);
  EXPECT_EQ(plan_scaling(automatic, {2}, kBetween, &neighbours).rows.back().together, 1);
  EXPECT_TRUE(neighbours.started.empty());
  if (processors > 1) {
    EXPECT_EQ(plan_scaling(automatic, {2, 2}, kBetween, &neighbours).rows.back().together, 2);
    EXPECT_EQ(neighbours.started, (std::vector<StepsHere::Start>{{1, processors / 2, 2}}));
  }
  automatic.config.threads.compute = processors;
  EXPECT_EQ(message_of<ConfigError>([&] {
              plan_scaling(automatic, {2, 2}, kBetween);
            }),
            str("--ranks-per-machine: 2 ranks with their compute threads need ", 2 * processors, " processors; this machine has ",
                processors));
}

// A matrix product of 12 samples that is large enough for a clock to time it.
TEST(ScalingPlan, NeighboursComputeInTheWaysThatAClockHasChosen) {
  Experiment timed = experiment("stages: [{name: dense, train: 2s}]\n",
                                ", relu, {linear: {out: 20000, name: wide}}, relu, {linear: {out: 10, name: last}}");
  timed.config.deterministic = false;
  StepsHere neighbours(timed);
  plan_scaling(timed, {2}, kBetween, &neighbours);
  EXPECT_EQ(neighbours.choices.empty(), neighbours.started.empty());
}

TEST(ScalingPlan, RefusesWhatCannotBeShared) {
  EXPECT_EQ(message_of<ConfigError>([] { plan_scaling(experiment(), {5}, kBetween); }),
            "--ranks: data.batch is 24; 5 ranks cannot share it equally");
  const std::string only = "stages: [{name: small, factorise: {keep: always, layers: fc, format: svd, ranks: {rank: 3}}}]\n";
  EXPECT_EQ(message_of<ConfigError>([&] { plan_scaling(experiment(only), {2}, kBetween); }), "--ranks: no stage of x trains");
}

TEST(ScalingPlan, ReadsBandwidthsInBitsAndLatencies) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("25G"), 25e9 / 8);
  EXPECT_DOUBLE_EQ(parse_bandwidth("0.5M"), 5e5 / 8);
  EXPECT_DOUBLE_EQ(parse_latency("10us"), 1e-5);
  EXPECT_DOUBLE_EQ(parse_latency("1.5ms"), 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_latency("500ns"), 5e-7);
  for (const char* const text : {"", "25", "G", "-1G", "0G", "infG", "25GB", "25 G"}) {
    EXPECT_EQ(message_of<ConfigError>([&] { parse_bandwidth(text); }),
              str("--bandwidth: '", text, "' is not one; write 25G for 25 Gbit/s, or 800M"));
  }
  EXPECT_EQ(message_of<ConfigError>([] { parse_latency("10"); }), "--latency: '10' is not one; write 10us, 500ns or 1ms");
}

}  // namespace
}  // namespace tessera

#include "bench/turns.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

Contestant noted(char name, std::string& log) {
  return {std::string(1, name), [name, &log] { log += name; }};
}

// Busy for at least this long, so that no load from outside can make it faster.
void spend(double milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

Contestant giving(std::string name, const Tensor& output, float value) {
  return {std::move(name), [=] { output.fill(value); }, {}, [=] { return output; }};
}

TEST(TimeInTurns, EveryRoundRunsEverySideAndAnotherBegins) {
  std::string log;
  const std::vector<Contestant> sides{noted('a', log), noted('b', log), noted('c', log)};
  const std::vector<Samples> samples = time_in_turns(sides, {.rounds = 4, .seconds = 0});
  EXPECT_EQ(log,
            "aabbcc"
            "aabbcc"
            "bbccaa"
            "ccaabb"
            "aabbcc");
  ASSERT_EQ(samples.size(), 3u);
  for (const Samples& side : samples) EXPECT_EQ(side.size(), 4u);
}

TEST(TimeInTurns, PreparesBeforeEveryCallWithoutCountingIt) {
  std::string log;
  Contestant side = noted('r', log);
  side.prepare = [&] {
    log += 'p';
    spend(20);
  };
  const std::vector<Samples> samples = time_in_turns(std::span(&side, 1), {.rounds = 2, .seconds = 0});
  EXPECT_EQ(log, "prprprprprpr");
  EXPECT_GE(samples[0][0], 0);
}

TEST(Ratios, AreTakenRoundByRound) {
  EXPECT_EQ(ratios({2, 9}, {1, 3}), (Samples{2, 3}));
  EXPECT_THROW(ratios({2, 9}, {1}), InternalError);
}

TEST(Fastest, IsTheLowestMedianNotTheLowestSample) {
  const std::vector<Samples> samples{{5, 6, 7}, {1, 9, 9}, {4, 4, 30}};
  EXPECT_EQ(fastest(samples), 2u);
}

TEST(Sweep, ListsAllAndKeepsTheFastestFirst) {
  const std::vector<Contestant> sides{{"slow", [] { spend(40); }}, {"quick", [] {}}};
  const Sweep swept = sweep(sides, {.rounds = 3, .seconds = 0});
  ASSERT_EQ(swept.finalists.size(), 1u);
  EXPECT_EQ(swept.finalists[0].name, "quick");
  ASSERT_EQ(swept.rows.as_list().size(), 2u);
  EXPECT_EQ(swept.rows.as_list()[0].at("name").as_string(), "slow");
  EXPECT_GE(swept.rows.as_list()[0].at("ms").as_double(), 40);
}

TEST(CheckAgreement, AcceptsDifferencesUpToTheTolerance) {
  const Tensor a = Tensor::zeros({3});
  const Tensor b = Tensor::zeros({3});
  const std::vector<Contestant> sides{giving("ours", a, 2.0f), giving("theirs", b, 2.001f), {"without result", [] {}}};
  EXPECT_NO_THROW(check_agreement(
      sides, [] {}, 1e-3));
  EXPECT_THROW(check_agreement(
                   sides, [] {}, 1e-4),
               NumericError);
}

TEST(CheckAgreement, NamesASideThatLeavesItsOutputUnwritten) {
  const Tensor a = Tensor::zeros({3});
  const Tensor b = Tensor::zeros({3});
  Contestant idle = giving("idle", b, 2.0f);
  idle.run = [] {};
  const std::vector<Contestant> sides{giving("ours", a, 2.0f), idle};
  const std::string message = message_of<NumericError>([&] {
    check_agreement(
        sides, [&] { b.fill(NAN); }, 1e-3);
  });
  EXPECT_NE(message.find("ours and idle"), std::string::npos) << message;
}

}  // namespace
}  // namespace tessera::bench

#include "bench/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

Contestant noted(char name, std::string& log) {
  return {std::string(1, name), [name, &log] { log += name; }};
}

// A clock that only the timed work advances.
double fake_seconds = 0;
double fake_clock() { return fake_seconds; }

Contestant giving(std::string name, const Tensor& output, float value) {
  return {std::move(name), [=] { output.fill(value); }, {}, [=] { return output; }};
}

TEST(Interleave, EveryRoundHasEverySideAndNoneFollowsTheSameOneAlways) {
  std::string log;
  const std::vector<Samples> samples = interleave(3, 40, 0, [&](std::size_t side) {
    log += static_cast<char>('a' + side);
    return static_cast<double>(side);
  });
  for (std::size_t side = 0; side < 3; ++side) {
    EXPECT_EQ(samples[side], Samples{std::vector<double>(40, static_cast<double>(side))});
  }
  std::map<std::string, int> orders;
  for (std::size_t round = 0; round < 40; ++round) {
    const std::string order = log.substr(3 * round, 3);
    EXPECT_TRUE(std::ranges::is_permutation(order, std::string_view("abc"))) << order;
    ++orders[order];
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(Interleave, EverySideIsAloneForAFewTurnsBeforeTheFirstRound) {
  std::string log;
  const auto turn = [&](std::size_t side) {
    log += static_cast<char>('a' + side);
    return static_cast<double>(log.size());
  };
  const std::vector<Samples> samples = interleave(2, 4, 3, turn);
  EXPECT_EQ(log.substr(0, 6), "aaabbb");
  EXPECT_EQ(log.size(), 6u + 2 * 4);
  EXPECT_EQ(samples[0].alone, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(samples[1].alone, (std::vector<double>{4, 5, 6}));
  for (const Samples& side : samples) {
    ASSERT_EQ(side.rounds.size(), 4u);
    EXPECT_GT(std::ranges::min(side.rounds), 6) << "a turn alone counts as a round";
  }
}

TEST(Interleave, AShortRunIsAloneNoLongerAndAnOnlySideNotAtAll) {
  std::string log;
  const auto turn = [&](std::size_t side) {
    log += static_cast<char>('a' + side);
    return 1.0;
  };
  EXPECT_EQ(interleave(2, 1, 3, turn), (std::vector<Samples>{{{1}, {1}}, {{1}, {1}}}));
  EXPECT_EQ(log.substr(0, 2), "ab");
  EXPECT_EQ(interleave(1, 2, 3, turn), (std::vector<Samples>{{{1, 1}}}));
}

TEST(TimeInTurns, ATurnWarmsUpForAsManyCallsAsItCounts) {
  std::string log;
  const std::vector<Contestant> sides{noted('a', log), noted('b', log)};
  const std::vector<Samples> samples = time_in_turns(sides, {.rounds = 4, .seconds = 0, .alone = 0});
  EXPECT_EQ(log.substr(0, 4), "aabb");
  for (std::size_t round = 0; round < 4; ++round) {
    const std::string turns = log.substr(4 + 4 * round, 4);
    EXPECT_TRUE(turns == "aabb" || turns == "bbaa") << turns;
  }
  ASSERT_EQ(samples.size(), 2u);
  for (const Samples& side : samples) EXPECT_EQ(side.rounds.size(), 4u);
}

TEST(TimeInTurns, PreparesBeforeEveryCallWithoutCountingIt) {
  std::string log;
  const Contestant side{"r",
                        [&] {
                          log += 'r';
                          fake_seconds += 0.25;
                        },
                        [&] {
                          log += 'p';
                          fake_seconds += 16;
                        }};
  const std::vector<Samples> samples = time_in_turns(std::span(&side, 1), {.rounds = 2, .seconds = 0, .clock = fake_clock});
  EXPECT_EQ(log, "prprprprprpr");
  EXPECT_EQ(samples, (std::vector<Samples>{{{250, 250}}}));
}

TEST(TimeInTurns, SlowestSideSaysHowOftenATurnRepeatsItsCall) {
  std::string log;
  const auto taking = [&](char name, double seconds) {
    return Contestant{std::string(1, name), [&log, name, seconds] {
                        log += name;
                        fake_seconds += seconds;
                      }};
  };
  const std::vector<Contestant> sides{taking('a', 0.5), taking('b', 0.25)};
  const std::vector<Samples> samples = time_in_turns(sides, {.rounds = 1, .seconds = 1.25, .clock = fake_clock, .alone = 0});
  EXPECT_EQ(log.substr(0, 4), "aabb");
  EXPECT_EQ(std::ranges::count(log, 'a'), 2 + 3 + 3) << log;
  EXPECT_EQ(std::ranges::count(log, 'b'), 2 + 3 + 3) << log;
  EXPECT_EQ(samples, (std::vector<Samples>{{{500}}, {{250}}}));
}

// The other side empties this side's caches, which take two calls to refill: one warm-up call a turn is not enough.
TEST(TimeInTurns, TheTimeAloneTellsOfASideThatTurnsSlow) {
  char last = ' ';
  int calls = 0;
  const auto side = [&](char name) {
    return Contestant{std::string(1, name), [&, name] {
                        calls = name == last ? calls + 1 : 0;
                        last = name;
                        fake_seconds += calls < 2 ? 1 : 0.25;
                      }};
  };
  const std::vector<Contestant> sides{side('a'), side('b')};
  for (const Samples& samples : time_in_turns(sides, {.rounds = 40, .seconds = 0, .clock = fake_clock})) {
    EXPECT_EQ(samples.alone, (std::vector<double>{1000, 250, 250}));
    const Value row = to_value(samples);
    EXPECT_EQ(row.at("alone").as_double(), 250);
    EXPECT_EQ(row.at("median").as_double(), 1000);
  }
}

TEST(TimeInTurns, ATimedSidesSampleIsTheMedianOfATurnWithoutItsFirstCall) {
  std::string log;
  const auto side = [&](char name, double ms) {
    return SelfTimed([&log, name, ms](std::int64_t count) {
      log += str(name, count);
      std::vector<double> all{1e6};
      for (std::int64_t i = 1; i < count; ++i) all.push_back(ms * static_cast<double>(i * i));
      return all;
    });
  };
  const std::vector<SelfTimed> sides{side('a', 1), side('b', 10)};
  EXPECT_EQ(time_in_turns(sides, 2, 3), (std::vector<Samples>{{{4, 4}, {4, 4}}, {{40, 40}, {40, 40}}}));
  EXPECT_EQ(log.substr(0, 8), "a4a4b4b4");
  for (const std::string& turns : {log.substr(8, 4), log.substr(12)}) EXPECT_TRUE(turns == "a4b4" || turns == "b4a4") << turns;
}

TEST(Lowest, AreWithinTheShareTheLowestFirstAndNeverWhatFailed) {
  EXPECT_EQ(lowest(std::vector<double>{11.5, INFINITY, 10, 11.6, 10.5, 10}, 1.15, 9), (std::vector<std::size_t>{2, 5, 4, 0}));
  EXPECT_EQ(lowest(std::vector<double>{11.5, INFINITY, 10, 11.6, 10.5, 10}, 1.15, 3), (std::vector<std::size_t>{2, 5, 4}));
  EXPECT_TRUE(lowest(std::vector<double>{INFINITY, INFINITY}, 1.15, 3).empty());
}

TEST(Ratios, AreTakenRoundByRound) {
  EXPECT_EQ(ratios(Samples{{2, 9}}, Samples{{1, 3}}), (std::vector<double>{2, 3}));
  EXPECT_THROW(ratios(Samples{{2, 9}}, Samples{{1}}), InternalError);
}

// Rounds of 4/1, 6/6 and 8/2: their ratios are 4, 1 and 4, and the medians are 6 and 2.
TEST(Ratios, ALineHasTheMedianOfTheRatiosAndTheRatioOfTheMedians) {
  const Value row = ratio_value(Samples{{4, 6, 8}}, Samples{{1, 6, 2}});
  EXPECT_EQ(row.at("median").as_double(), 4);
  EXPECT_EQ(row.at("of_medians").as_double(), 3);
  EXPECT_DOUBLE_EQ(row.at("p10").as_double(), 1.6);
}

TEST(Times, ALineHasEveryRoundInItsOrderToFourDigits) {
  const Value row = to_value(Samples{{3.14159, 1234567, 0.000271828}, {3.5, 2.71828, 9}});
  EXPECT_EQ(to_json(row.at("rounds")), "[3.142,1235000.0,0.0002718]");
  EXPECT_EQ(row.at("median").as_double(), 3.14159);
  EXPECT_EQ(row.at("alone").as_double(), 3.5);
  EXPECT_EQ(to_value(Samples{{1, 2}}).find("alone"), nullptr);
}

TEST(Fastest, IsTheLowestMedianNotTheLowestSample) {
  const std::vector<Samples> samples{{{5, 6, 7}}, {{1, 9, 9}}, {{4, 4, 30}}};
  EXPECT_EQ(fastest(samples), 2u);
}

TEST(Sweep, ListsAllAndKeepsTheFastestFirst) {
  const std::vector<Contestant> sides{{"slow", [] { fake_seconds += 0.5; }}, {"quick", [] { fake_seconds += 0.25; }}};
  const Sweep swept = sweep(sides, {.rounds = 3, .seconds = 0, .clock = fake_clock});
  ASSERT_EQ(swept.finalists.size(), 1u);
  EXPECT_EQ(swept.finalists[0].name, "quick");
  ASSERT_EQ(swept.rows.as_list().size(), 2u);
  EXPECT_EQ(swept.rows.as_list()[0].at("name").as_string(), "slow");
  EXPECT_EQ(swept.rows.as_list()[0].at("ms").as_double(), 500);
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

#include "core/device/decisions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>

#include "core/support/error.h"
#include "core/support/log.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"

namespace tessera {
namespace {

const std::vector<std::string> kNames{"a", "b", "c"};

std::function<double(std::size_t)> clock_with(std::vector<double> seconds) {
  return [seconds](std::size_t i) { return seconds[i]; };
}

double no_clock(std::size_t) {
  ADD_FAILURE() << "a clock was read";
  return 0;
}

TEST(Decisions, TheFirstCandidateWithoutAScopeOrAMeasurement) {
  EXPECT_FALSE(decisions_active());
  EXPECT_EQ(decision_epoch(), 0u);
  EXPECT_EQ(decide("k", kNames, no_clock), 0u);
  const DecisionScope scope({});
  EXPECT_TRUE(decisions_active());
  EXPECT_EQ(decide("k", kNames, no_clock), 0u);
  EXPECT_TRUE(scope.taken().empty());
}

TEST(Decisions, TheOutlookTellsWhetherAClockWillBeRead) {
  EXPECT_FALSE(outlook_of("key").measured);
  {
    const DecisionScope fixed({.known = {{"key", "b"}}});
    EXPECT_EQ(outlook_of("key").known, "b");
    EXPECT_FALSE(outlook_of("other").measured);
  }
  {
    const DecisionScope clock({.measure = true, .known = {{"key", "b"}}});
    EXPECT_FALSE(outlook_of("key").measured) << "its choice is known";
    EXPECT_TRUE(outlook_of("other").measured);
    EXPECT_EQ(outlook_of("other").known, "");
    EXPECT_TRUE(clock.log().replayed.empty()) << "an outlook decides nothing";
    const ThreadDecisions thread(DecisionMap{{"other", "c"}});
    EXPECT_EQ(outlook_of("other").known, "c");
    EXPECT_FALSE(outlook_of("key").measured);
  }
  const DecisionScope forced({.forced = "a"});
  EXPECT_EQ(outlook_of("key").known, "a");
}

TEST(Decisions, TheFastestIsRecordedBeforeItIsUsed) {
  DecisionMap recorded;
  const DecisionScope scope({.measure = true, .on_measured = [&](const std::string& key, const std::string& choice) {
                               EXPECT_FALSE(scope.taken().contains(key));
                               recorded[key] = choice;
                             }});
  EXPECT_EQ(decide("k", kNames, clock_with({3, 1, 2})), 1u);
  EXPECT_EQ(recorded, (DecisionMap{{"k", "b"}}));
  EXPECT_EQ(scope.taken(), recorded);
  EXPECT_EQ(decide("k", kNames, no_clock), 1u);
}

TEST(Decisions, AnotherProcessIsAskedInPlaceOfAClock) {
  std::vector<std::string> asked;
  const auto answer = [&](const std::string& key) {
    asked.push_back(key);
    return std::string(key == "k" ? "c" : "elsewhere");
  };
  const DecisionScope scope({.measure = true, .known = {{"known", "b"}}, .ask = answer});
  EXPECT_EQ(decide("known", kNames, no_clock), 1u);
  EXPECT_EQ(decide("k", kNames, no_clock), 2u);
  EXPECT_EQ(decide("k", kNames, no_clock), 2u);
  const std::vector<std::string> one{"a"};
  EXPECT_EQ(decide("single", one, no_clock), 0u);
  const auto measure = []() -> std::string {
    ADD_FAILURE() << "a clock was read";
    return "";
  };
  EXPECT_EQ(recall_or_measure("text", measure), "elsewhere");
  EXPECT_EQ(asked, (std::vector<std::string>{"k", "text"})) << "once each, and not where nothing is to be chosen";
  EXPECT_EQ(message_of<Error>([&] { decide("other", kNames, no_clock); }),
            "decisions: other was decided as 'elsewhere' by another process, which is not offered here; a, b, c are");
}

TEST(Decisions, CandidatesTakeTheirTurnsInAnotherOrderEachRound) {
  const DecisionScope scope({.measure = true});
  std::string order;
  decide("k", kNames, [&](std::size_t i) {
    order += kNames[i];
    return 0.001 + 0.00001 * static_cast<double>(i);
  });
  ASSERT_EQ(order.size(), 3u * 16) << "a round to warm up, and the most that are timed";
  std::set<std::string> rounds;
  for (std::size_t at = 3; at < order.size(); at += 3) {
    const std::string round = order.substr(at, 3);
    EXPECT_TRUE(std::ranges::is_permutation(round, std::string_view("abc"))) << round;
    rounds.insert(round);
  }
  EXPECT_GE(rounds.size(), 4u);
}

TEST(Decisions, ASmallGainDisplacesNothing) {
  const DecisionScope scope({.measure = true});
  EXPECT_EQ(decide("small", kNames, clock_with({1, 0.98, 0.975})), 0u);
  EXPECT_EQ(decide("large", kNames, clock_with({1, 0.98, 0.96})), 2u);
}

TEST(Decisions, OneLuckyRoundDecidesNothing) {
  const DecisionScope scope({.measure = true});
  std::vector<int> calls(2);
  const auto seconds = [&](std::size_t i) {
    ++calls[i];
    return i == 1 && calls[1] % 4 == 0 ? 0.0001 : i == 1 ? 0.0012 : 0.001;
  };
  EXPECT_EQ(decide("key", std::vector<std::string>{"a", "b"}, seconds), 0u);
}

TEST(Decisions, RoundsAreSpentWhereTheyTell) {
  const DecisionScope scope({.measure = true});
  const auto calls_with = [](const std::string& key, const std::vector<double>& times) {
    std::vector<int> calls(times.size());
    const auto seconds = [&](std::size_t i) {
      ++calls[i];
      return times[i];
    };
    decide(key, std::vector<std::string>{"a", "b", "c"}, seconds);
    return calls;
  };
  EXPECT_EQ(calls_with("close", {0.001, 0.0011, 0.01}), (std::vector<int>{16, 16, 6}));  // the first call of each is not counted
  EXPECT_EQ(calls_with("clear", {0.001, 0.01, 0.01}), (std::vector<int>{6, 6, 6}));
  EXPECT_EQ(calls_with("long", {0.05, 0.051, 0.052}), (std::vector<int>{6, 6, 6}));
}

TEST(Decisions, ALaterCandidateWithoutMemoryIsNeverChosen) {
  const auto starved = [](std::size_t starving) {
    return [=](std::size_t i) {
      const double seconds = seconds_of(i, [=] { TESSERA_CHECK(i != starving, OutOfMemoryError, "no room"); });
      return i == 0 ? seconds + 1 : seconds;  // the first is the slowest
    };
  };
  const DecisionScope scope({.measure = true});
  EXPECT_EQ(decide("later", std::vector<std::string>{"a", "b"}, starved(1)), 0u);
  EXPECT_EQ(decide("none", std::vector<std::string>{"a", "b"}, starved(2)), 1u);
  EXPECT_THROW(decide("first", std::vector<std::string>{"a", "b"}, starved(0)), OutOfMemoryError);
}

TEST(Decisions, AChoiceThatCannotBeRecordedIsNotTaken) {
  const DecisionScope scope(
      {.measure = true, .on_measured = [](const std::string&, const std::string&) { throw IoError("disk full"); }});
  EXPECT_THROW(decide("k", kNames, clock_with({3, 1, 2})), IoError);
  EXPECT_TRUE(scope.taken().empty());
}

TEST(Decisions, AKnownNameThatIsNotOfferedIsWarnedAbout) {
  std::string warning, told;
  const testing::LogSinkScope sink(
      [&](LogLevel level, std::string_view text) { (level == LogLevel::debug ? told : warning) = text; });
  const DecisionScope scope({.measure = true, .known = {{"k", "amx"}}});
  EXPECT_EQ(decide("k", kNames, no_clock), 0u);
  EXPECT_EQ(told, "decisions: k: a");
  EXPECT_EQ(warning, "decisions: k was decided as 'amx', which is not offered here; 'a' of a, b, c is used and bytes may differ");
}

TEST(Decisions, TheLogTellsWhatWasReplayedAndWhatMeasured) {
  const DecisionScope scope({.measure = true, .known = {{"asked", "c"}, {"spoken", "words"}, {"never", "a"}}});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(decide("asked", kNames, no_clock), 2u);
    EXPECT_EQ(decide("new", kNames, clock_with({2, 1, 2})), 1u);
    EXPECT_EQ(recall_or_measure("spoken", [] { return std::string("others"); }), "words");
  }
  EXPECT_EQ(scope.log().replayed, (std::set<std::string>{"asked", "spoken"}));
  EXPECT_EQ(scope.log().measured, (std::set<std::string>{"new"}));
}

TEST(Decisions, AForcedNameComesFirstAndScopesNest) {
  const DecisionScope outer({.known = {{"k", "b"}}});
  const std::uint64_t epoch = decision_epoch();
  std::uint64_t first = 0;
  {
    const DecisionScope inner({.known = {{"k", "b"}}, .forced = "c"});
    EXPECT_TRUE(choice_is_forced());
    first = decision_epoch();
    EXPECT_NE(first, epoch) << "what was cached outside is not used inside";
    EXPECT_EQ(decide("k", kNames, no_clock), 2u);
    EXPECT_EQ(decide("other", std::vector<std::string>{"a", "b"}, no_clock), 0u);
    EXPECT_EQ(inner.log().forced, (std::set<std::string>{"k"}));
    EXPECT_TRUE(inner.log().replayed.empty());
  }
  EXPECT_FALSE(choice_is_forced());
  EXPECT_EQ(decision_epoch(), epoch) << "what was cached before is used again";
  EXPECT_EQ(decide("k", kNames, no_clock), 1u);
  const DecisionScope second({});
  EXPECT_NE(decision_epoch(), epoch);
  EXPECT_NE(decision_epoch(), first);
}

TEST(Decisions, ThoseOfAThreadGoBeforeTheProcesssAndAreItsOwn) {
  const DecisionScope process({.measure = true, .known = {{"k", "b"}}, .forced = "a"});
  const std::uint64_t epoch = decision_epoch();
  const auto measure = []() -> std::string {
    ADD_FAILURE() << "measured";
    return "";
  };
  {
    const ThreadDecisions own(DecisionMap{{"k", "c"}, {"spoken", "words"}});
    EXPECT_TRUE(decisions_active());
    EXPECT_FALSE(choice_is_forced());
    EXPECT_NE(decision_epoch(), epoch);
    EXPECT_EQ(decide("k", kNames, no_clock), 2u);
    EXPECT_EQ(decide("new", kNames, no_clock), 0u) << "what is not known is not measured";
    EXPECT_EQ(recall_or_measure("spoken", measure), "words");
    EXPECT_EQ(recall_or_measure("new", measure), std::nullopt);
    std::thread([&] {
      EXPECT_EQ(decision_epoch(), epoch) << "another thread has the process's";
      const ThreadDecisions others(DecisionMap{{"k", "b"}});
      EXPECT_NE(decision_epoch(), own.epoch());
      EXPECT_EQ(decide("k", kNames, no_clock), 1u);
    }).join();
    EXPECT_EQ(decision_epoch(), own.epoch());
    const std::uint64_t outer = own.epoch();
    {
      const ThreadDecisions inner({});
      EXPECT_EQ(decide("k", kNames, no_clock), 0u);
    }
    EXPECT_EQ(decision_epoch(), outer);
  }
  EXPECT_EQ(decision_epoch(), epoch);
  EXPECT_EQ(decide("k", kNames, no_clock), 0u) << "forced again";
  EXPECT_TRUE(process.log().replayed.empty()) << "a thread's own choices are in no log";
}

TEST(Decisions, OneOfAThreadThatIsNotOfferedIsWarnedAbout) {
  std::string warning;
  const testing::LogSinkScope sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warning = text;
  });
  const ThreadDecisions own(DecisionMap{{"k", "amx"}});
  EXPECT_EQ(decide("k", kNames, no_clock), 0u);
  EXPECT_EQ(warning, "decisions: k was decided as 'amx', which is not offered here; 'a' of a, b, c is used and bytes may differ");
}

}  // namespace
}  // namespace tessera

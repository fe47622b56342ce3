#include "compress/timing/clock.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/device/device_work.h"
#include "tests/support/scopes.h"

namespace tessera {
namespace {

TEST(Clock, PreparesEachRunOutsideTheClockAndTakesTheRoundsInAnyOrder) {
  const HostClock clock([] { return 0.0; });
  std::string order;
  const Contender contenders[]{{.run = [&] { order += 'a'; }, .prepare = [&] { order += '<'; }}, {.run = [&] { order += 'b'; }}};
  const Timings timings = time_in_turn(contenders, {.warm_up = 1, .rounds = 24});
  EXPECT_EQ(order.substr(0, 15), "<ab<abb<ab<a<ab") << "a warm-up, then the rounds";
  int turned = 0;
  for (std::size_t round = 1; round <= 24; ++round) {
    const std::string turns = order.substr(3 * round, 3);
    EXPECT_TRUE(turns == "<ab" || turns == "b<a") << turns;
    turned += turns == "b<a" ? 1 : 0;
  }
  EXPECT_EQ(turned, 12);
  EXPECT_EQ(order.size(), 75u);
  EXPECT_EQ(timings.ms.at(0).size(), 24u);
  EXPECT_EQ(timings.ms.at(1).size(), 24u);
  EXPECT_FALSE(timings.replayed) << "nothing is recorded on the CPU";
}

// Runs of 2 and 3 ms on a test clock. Five rounds fill the 25 ms between two batches.
TEST(Clock, BetweenTwoBatchesAllRunUntimed) {
  double now = 0;
  const HostClock clock([&] { return now; });
  std::string order;
  const Contender contenders[]{{.run =
                                    [&] {
                                      order += 'a';
                                      now += 2e-3;
                                    }},
                               {.run = [&] {
                                 order += 'b';
                                 now += 3e-3;
                               }}};
  const Timings timings = time_in_turn(contenders, {.warm_up = 1, .rounds = 4, .batches = 3});
  ASSERT_EQ(timings.ms.at(0).size(), 12u);
  EXPECT_EQ(order.size(), 2u + 3 * 8 + 2 * 2 * 5);
  EXPECT_EQ(order.substr(2, 8), "abbabaab");
  EXPECT_EQ(order.substr(20, 8), "baababba") << "the second batch begins with the other side";
  for (const double ms : timings.ms[0]) EXPECT_NEAR(ms, 2, 1e-9);
  for (const double ms : timings.ms[1]) EXPECT_NEAR(ms, 3, 1e-9);
}

// 20 ms of preparation and 2 ms of work: two rounds fill the 25 ms.
TEST(Clock, PreparationCountsBetweenTwoBatchesAndInNoReading) {
  double now = 0;
  const HostClock clock([&] { return now; });
  int runs = 0;
  const Contender contender{.run =
                                [&] {
                                  ++runs;
                                  now += 2e-3;
                                },
                            .prepare = [&] { now += 20e-3; }};
  const Timings timings = time_in_turn({&contender, 1}, {.rounds = 1, .batches = 3});
  EXPECT_EQ(runs, 3 + 2 * 2);
  for (const double ms : timings.ms.at(0)) EXPECT_NEAR(ms, 2, 1e-9);
}

TEST(Clock, WorkOfNoTimeEndsBetweenBatches) {
  const HostClock clock([] { return 0.0; });
  int runs = 0;
  const Contender contender{.run = [&] { ++runs; }};
  time_in_turn({&contender, 1}, {.rounds = 1, .batches = 3});
  EXPECT_EQ(runs, 5);
}

// Work of 2 ms. Disturbed runs take 16 ms, because another program has the cores, and threads wait 4 ms of these.
class SharedCores {
 public:
  // `disturbed`: gets the number of the run, counted from 0.
  explicit SharedCores(std::function<bool(int run)> disturbed) : disturbed_(std::move(disturbed)) {}
  void run() {
    const bool waits = disturbed_(runs_++);
    now_ += waits ? 16e-3 : 2e-3;
    waited_ += waits ? 4e-3 : 5e-5;
  }
  int runs() const { return runs_; }

 private:
  std::function<bool(int)> disturbed_;
  int runs_ = 0;
  double now_ = 0, waited_ = 0;
  HostClock clock_{[this] { return now_; }, [this] { return waited_; }};
};

TEST(Clock, ReadsRoundsAgainInWhichThreadsWaitedForACore) {
  SharedCores cores([](int run) { return run == 3 || run == 4 || run == 7; });
  const Contender contender{.run = [&] { cores.run(); }};
  const Timings timings = time_in_turn({&contender, 1}, {.warm_up = 1, .rounds = 8});
  EXPECT_EQ(cores.runs(), 1 + 8 + 3);
  EXPECT_EQ(timings.disturbance.rounds, 0);
  ASSERT_EQ(timings.ms.at(0).size(), 8u);
  for (const double ms : timings.ms[0]) EXPECT_NEAR(ms, 2, 1e-9);
}

TEST(Clock, WarnsWhereThereAreTooFewQuietRounds) {
  SharedCores cores([](int) { return true; });
  const Contender contender{.run = [&] { cores.run(); }};
  std::string warnings;
  const testing::LogSinkScope sink([&](LogLevel, std::string_view message) { warnings += message; });
  const Timings timings = time_in_turn({&contender, 1}, {.rounds = 8});
  EXPECT_EQ(cores.runs(), 8 + 2) << "two again, and none was quiet";
  EXPECT_EQ(timings.disturbance.rounds, 8);
  EXPECT_EQ(timings.ms.at(0).size(), 8u);
  warn_of(timings.disturbance, "fc");
  EXPECT_TRUE(warnings.starts_with("timing fc: threads waited for a core in 8 of 8 rounds, ")) << warnings;
}

TEST(Clock, AFewDisturbedRoundsAreNotWarnedAbout) {
  SharedCores cores([](int run) { return run >= 14; });  // the last round, however often it is read
  const Contender contenders[]{{.run = [&] { cores.run(); }}, {.run = [&] { cores.run(); }}};
  std::string warnings;
  const testing::LogSinkScope sink([&](LogLevel, std::string_view message) { warnings += message; });
  const Timings timings = time_in_turn(contenders, {.rounds = 8});
  EXPECT_EQ(timings.disturbance.rounds, 1);
  warn_of(timings.disturbance, "fc");
  EXPECT_EQ(warnings, "");
}

// A wait counts if it is long relative to the reading that it falls into, even if other sides take longer.
TEST(Clock, AShortSideIsReadAgainForAWaitThatALongOneWouldHide) {
  double now = 0, waited = 0;
  const HostClock clock([&] { return now; }, [&] { return waited; });
  int runs = 0;
  const auto run = [&](double seconds, double wait) {
    now += seconds + wait;
    waited += wait;
  };
  const Contender contenders[]{{.run = [&] { run(20e-3, 0.5e-3); }}, {.run = [&] { run(1e-3, runs++ == 2 ? 0.5e-3 : 0); }}};
  const Timings timings = time_in_turn(contenders, {.rounds = 8});
  EXPECT_EQ(runs, 8 + 1);
  for (const double ms : timings.ms.at(1)) EXPECT_NEAR(ms, 1, 1e-9);
}

TEST(Clock, WaitsWhileSomethingIsPreparedDoNotCount) {
  double now = 0, waited = 0;
  const HostClock clock([&] { return now; }, [&] { return waited; });
  int runs = 0;
  const Contender contender{.run =
                                [&] {
                                  ++runs;
                                  now += 1e-3;
                                },
                            .prepare = [&] { waited += 1; }};
  EXPECT_EQ(time_in_turn({&contender, 1}, {.rounds = 8}).disturbance.rounds, 0);
  EXPECT_EQ(runs, 8);
}

// The readings of a device of constant speed, and their number.
struct SteadyDevice {
  double launch = 0;
  double run = 0;
  int asked = 0;
  std::int64_t runs() {
    return runs_per_reading([this](std::int64_t count) {
      ++asked;
      return launch + static_cast<double>(count) * run;
    });
  }
};

TEST(Clock, AReadingIsLongEnoughForEvents) {
  SteadyDevice slow{.run = 2e-3};
  EXPECT_EQ(slow.runs(), 1);
  EXPECT_EQ(slow.asked, 1);
  SteadyDevice quick{.run = 1e-5};
  EXPECT_EQ(quick.runs(), 100);
  EXPECT_LE(quick.asked, 3);
  SteadyDevice launched{.launch = 5e-6, .run = 1e-5};  // launch is a third of the first reading
  const std::int64_t runs = launched.runs();
  EXPECT_GE(5e-6 + static_cast<double>(runs) * 1e-5, kReadingSeconds);
  EXPECT_LE(runs, 200);
}

TEST(Clock, WorkOfNoTimeHasALimit) {
  SteadyDevice nothing{};
  EXPECT_EQ(nothing.runs(), kMostRuns);
  EXPECT_EQ(nothing.asked, 1);
  SteadyDevice empty{.launch = 2e-6};
  EXPECT_EQ(empty.runs(), kMostRuns);
  EXPECT_LE(empty.asked, 12);
}

}  // namespace
}  // namespace tessera

#include "compress/timing/clock.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera {
namespace {

TEST(Clock, PreparesEachRunOutsideTheClock) {
  std::string order;
  const Contender contenders[]{{.run = [&] { order += 'a'; }, .prepare = [&] { order += '<'; }}, {.run = [&] { order += 'b'; }}};
  const Timings timings = time_in_turn(contenders, {.warm_up = 1, .rounds = 2});
  EXPECT_EQ(order, "<ab<ab<ab");
  EXPECT_EQ(timings.ms.at(0).size(), 2u);
  EXPECT_EQ(timings.ms.at(1).size(), 2u);
  EXPECT_FALSE(timings.replayed) << "nothing is recorded on the CPU";
}

// What a device of constant speed tells, and how often it is asked.
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
  SteadyDevice launched{.launch = 5e-6, .run = 1e-5};  // the first reading of one run is half launch
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

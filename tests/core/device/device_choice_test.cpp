#include "core/device/device_choice.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "core/device/decisions.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "tests/support/scopes.h"

namespace tessera {
namespace {

const std::vector<std::string> kNames{"first", "second", "third"};

// The second candidate is the fastest.
void sleep_as(std::size_t i) { if (i != 1) std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

TEST(DeviceChoice, WithoutDecisionsTheFirstIsTakenAndNothingRuns) {
  EXPECT_EQ(choose_on(Device::cpu(), "k", kNames, [](std::size_t) { FAIL() << "nothing may be timed"; }), 0u);
}

TEST(DeviceChoice, TheFastestIsTakenAndRecorded) {
  const DecisionScope scope({.measure = true});
  EXPECT_EQ(choose_on(Device::cpu(), "k", kNames, sleep_as), 1u);
  EXPECT_EQ(scope.taken(), (DecisionMap{{"k", "second"}}));
}

TEST(DeviceChoice, ACandidateThatTheDeviceRefusesIsNotTaken) {
  std::string warning;
  const testing::LogSinkScope sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warning = text;
  });
  const DecisionScope scope({.measure = true});
  const auto run = [](std::size_t i) {
    if (i == 1) throw DeviceError("no such kernel");
    if (i == 2) throw OutOfMemoryError("no room");
  };
  EXPECT_EQ(choose_on(Device::cpu(), "k", kNames, run), 0u);
  EXPECT_EQ(warning, "k: 'second' is not used: no such kernel");
}

TEST(DeviceChoice, TheFirstCandidatesErrorsPass) {
  const DecisionScope scope({.measure = true});
  EXPECT_THROW(choose_on(Device::cpu(), "k", kNames, [](std::size_t) { throw DeviceError("broken"); }), DeviceError);
  EXPECT_THROW(choose_on(Device::cpu(), "m", kNames, [](std::size_t) { throw OutOfMemoryError("no room"); }), OutOfMemoryError);
  EXPECT_TRUE(scope.taken().empty());
}

TEST(DeviceClock, OnTheCpuTheWorkRunsAtEachReading) {
  int runs = 0;
  DeviceClock clock(Device::cpu(), [&] { ++runs; });
  for (int reading = 1; reading <= 3; ++reading) {
    EXPECT_GE(clock.seconds(), 0.0);
    EXPECT_EQ(runs, 1 + reading);  // one untimed run precedes the first reading
  }
}

}  // namespace
}  // namespace tessera

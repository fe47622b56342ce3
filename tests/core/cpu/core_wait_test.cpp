#include "core/cpu/core_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/device/device_work.h"

namespace tessera::cpu {
namespace {

// More busy threads than cores, so that some thread waits at any time.
TEST(CoreWait, GrowsWhereThereAreMoreThreadsThanCores) {
  if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "the system does not tell what threads wait";
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::thread::hardware_concurrency() + 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
      }
    });
  }
  const auto begin = std::chrono::steady_clock::now();
  CoreWait wait;
  wait.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double waited = wait.seconds();
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  stop = true;
  if (waited == 0) GTEST_SKIP() << "the system does not tell what threads wait";
  EXPECT_GT(waited, 0.02) << "of " << passed << " s, for which two threads more than there are cores wanted to run";
  EXPECT_LE(waited, 1.1 * passed) << "of one thread";
}

TEST(CoreWait, IsThatOfAClockOfTests) {
  double waited = 3;
  const HostClock clock([] { return 0.0; }, [&] { return waited; });
  CoreWait wait;
  wait.begin();
  EXPECT_EQ(wait.seconds(), 0);
  waited = 4;
  EXPECT_EQ(wait.seconds(), 1);
}

TEST(CoreWait, IsNothingUnderAClockOfTestsThatTellsNone) {
  const HostClock clock([] { return 0.0; });
  CoreWait wait;
  wait.begin();
  EXPECT_EQ(wait.seconds(), 0);
}

}  // namespace
}  // namespace tessera::cpu

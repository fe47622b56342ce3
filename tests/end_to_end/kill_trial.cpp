#include "tests/end_to_end/kill_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <random>

#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {

using Milliseconds = std::chrono::milliseconds;

void run_straight(KillTrial& trial) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run_program(trial.train("straight"), trial.environment);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  trial.whole = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - begin);
  trial.straight = result_of(trial.run_in("straight"));
}

void expect_survives(const KillTrial& trial, std::initializer_list<const char*> places) {
  std::vector<std::string> next = trial.train("staged");
  for (const char* const place : places) {
    const Outcome killed = run_program(next, joined(trial.environment, {str("TESSERA_KILL_AT=", place)}));
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << place << ": " << killed.output;
    next = {"resume", trial.run_in("staged")};
  }
  const Outcome outcome = run_program(next, trial.environment);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(result_of(trial.run_in("staged")) == trial.straight);
}

void expect_survives(const KillTrial& trial, int kills, unsigned seed) {
  std::mt19937 random(seed);
  int killed = 0;
  // Other programs' load makes a run slower or faster than the straight one. A kill that comes too late shortens the range of
  // the next random delay, and a kill in time lengthens it.
  std::int64_t longest = std::max<std::int64_t>(trial.whole.count(), 8);
  for (int run = 0; killed < kills; ++run) {
    ASSERT_LT(run, kills + 30) << "kills come too late";
    const std::string runs = str("killed-", run);
    std::vector<std::string> next = trial.train(runs);
    for (bool ended = false; !ended;) {
      const Milliseconds wait(random() % static_cast<unsigned>(longest));
      RunningProgram program(next, trial.environment);
      if (!program.ends_within(wait)) program.send(SIGKILL);
      const Outcome outcome = program.finish();
      ended = outcome.exit_code == 0;
      longest = ended ? std::max<std::int64_t>(longest * 7 / 8, 8) : longest * 9 / 8;
      ASSERT_TRUE(ended || outcome.exit_code == 128 + SIGKILL) << outcome.output;
      if (std::filesystem::exists(trial.run_in(runs) + "/config.resolved.yaml")) {
        next = {"resume", trial.run_in(runs)};
        if (!ended) ++killed;
      } else if (!ended) {  // killed before it became a run
        trial.forget(runs);
      }
    }
    EXPECT_TRUE(result_of(trial.run_in(runs)) == trial.straight) << runs << ", after " << killed << " kills in all";
  }
}

}  // namespace tessera::testing

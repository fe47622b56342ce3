// A run is killed at 32 places and times. Each resumed run ends with the bytes of the uninterrupted run.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "core/support/error.h"
#include "tests/end_to_end/kill_trial.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

class Kill : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "small.yaml", kSmallExperiment); }

  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/small/1"); }
  std::vector<std::string> train(const std::string& runs, const std::string& decisions = {}) const {
    // conv2 is large enough for a clock to choose its algorithms.
    std::vector<std::string> arguments{"train",        folder_ / "small.yaml", "--runs",
                                       folder_ / runs, "checkpoint.every=7s",  "model.layers[3].conv2d.out=32"};
    if (!decisions.empty()) arguments.insert(arguments.end(), {"--decisions", decisions + "/decisions.json"});
    return arguments;
  }
  // Makes the uninterrupted run to compare with, before the first kill.
  void run_straight() {
    expect_done(run_program(train("straight")));
    straight_ = result_of(run_in("straight"));
  }
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }

  // Kills a replay of the straight run at `place`, resumes it and compares.
  void expect_survives(const std::string& place) {
    SCOPED_TRACE(place);
    const std::string runs = "killed-" + place;
    const Outcome killed = run_program(train(runs, run_in("straight")), {"TESSERA_KILL_AT=" + place});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
    expect_done(run_program({"resume", run_in(runs)}));
    EXPECT_TRUE(result_of(run_in(runs)) == straight_);
  }

  TemporaryFolder folder_;
  std::string straight_;
};

TEST_F(Kill, AtTwelveSteps) {
  run_straight();
  std::vector<int> steps;
  for (int step = 1; step <= 47; ++step) {
    if (step != 27 && step != 41) steps.push_back(step);  // a factorisation counts as a step
  }
  std::mt19937 random(30);
  std::shuffle(steps.begin(), steps.end(), random);
  for (int i = 0; i < 12; ++i) expect_survives(str("step:", steps[static_cast<std::size_t>(i)]));
}

TEST_F(Kill, InTwoSavesAfterFourAndInBothFactorisations) {
  run_straight();
  for (const char* place : {"saving:7", "saving:40", "save:7", "save:26", "save:27", "save:40", "factorise:1", "factorise:3"})
    expect_survives(place);
}

// The killed run measures for itself, so a straight run then replays the killed run's choices.
TEST_F(Kill, InsideThreeTimings) {
  for (int timing = 1; timing <= 3; ++timing) {
    SCOPED_TRACE(timing);
    const std::string runs = str("timed-", timing);
    const Outcome killed = run_program(train(runs), {str("TESSERA_KILL_AT=timing:", timing)});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
    expect_done(run_program({"resume", run_in(runs)}));
    expect_done(run_program(train("replay-" + runs, run_in(runs))));
    EXPECT_TRUE(result_of(run_in(runs)) == result_of(run_in("replay-" + runs)));
  }
}

// Kills at any activity: reading data, writing a checkpoint, removing one. The clock makes the times random.
TEST_F(Kill, AtNineRandomTimes) {
  KillTrial trial{.train = [&](const std::string& runs) { return train(runs, runs == "straight" ? "" : run_in("straight")); },
                  .run_in = [&](const std::string& runs) { return run_in(runs); },
                  .forget = [&](const std::string& runs) { std::filesystem::remove_all(folder_ / runs); }};
  testing::run_straight(trial);
  testing::expect_survives(trial, 9, 9);
}

}  // namespace
}  // namespace tessera::testing

// `--profile`: what it writes and prints, and that the profiled run is otherwise unchanged.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

class ProfiledRun : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "small.yaml", kSmallExperiment); }

  Outcome train(const std::string& runs, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"train", folder_ / "small.yaml", "--runs", folder_ / runs};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
  std::string run_of(const std::string& runs) { return folder_ / (runs + "/small/1"); }
  static Value profile_of(const std::string& run) { return parse_json(read_bytes(run + "/profile.json"), "profile.json"); }

  TemporaryFolder folder_;
};

TEST_F(ProfiledRun, TellsWhereTheTimeGoesAndChangesNoByte) {
  const Outcome plain = train("plain", {"deterministic=true"});
  ASSERT_EQ(plain.exit_code, 0) << plain.output;
  EXPECT_FALSE(std::filesystem::exists(run_of("plain") + "/profile.json"));
  const Outcome profiled = train("profiled", {"deterministic=true", "--profile", "4"});
  ASSERT_EQ(profiled.exit_code, 0) << profiled.output;
  EXPECT_TRUE(result_of(run_of("profiled")) == result_of(run_of("plain")));

  expect_in(profiled.output, "profile of stage dense, steps 4 to 7, 32 samples each: ");
  expect_in(profiled.output, "\nengine overhead: ");
  expect_in(read_bytes(run_of("profiled") + "/profile.md"), "| conv2d | backward | 2 |");
  const Value profile = profile_of(run_of("profiled"));
  std::int64_t steps = 0;
  for (const Value& ns : profile.at("step_ns").as_list()) steps += ns.as_int();
  std::int64_t rows = 0;
  bool waited = false;
  for (const Value& row : profile.at("rows").as_list()) {
    rows += row.at("kernel_ns").as_int() + row.at("engine_ns").as_int();
    waited = waited || row.at("part").as_string() == "data";
  }
  EXPECT_EQ(rows, steps);
  EXPECT_TRUE(waited);
  EXPECT_EQ(profile.at("step_ns").as_list().size(), 4u);
}

TEST_F(ProfiledRun, AStageThatEndsEarlierTellsOfItsSteps) {
  const Outcome outcome = train("short", {"stages[0].train=5s", "--profile"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "profile of stage dense, steps 4 to 5, ");
}

TEST_F(ProfiledRun, AStageWithoutEnoughStepsLeavesItToTheNext) {
  const Outcome outcome = train("next", {"stages[0].train=3s", "--profile", "2"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "profile of stage finetuned, steps 8 to 9, ");  // 3 steps, a factorisation, 3 warm-up steps
}

TEST_F(ProfiledRun, StagesThatOnlyWarmUpSaySo) {
  const Outcome outcome = train("warm", {"stages=[{name: dense, train: 3s}]", "--profile"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "profile: none; the first 3 steps of a stage warm up");
}

TEST_F(ProfiledRun, AResumedRunIsProfiledToo) {
  const std::vector<std::string> run{"train", folder_ / "small.yaml", "--runs", folder_ / "killed", "checkpoint.async=false"};
  ASSERT_EQ(run_program(run, {"TESSERA_KILL_AT=step:6"}).exit_code, 128 + 9);
  const Outcome outcome = run_program({"resume", run_of("killed"), "--profile", "2"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "profile of stage dense, steps 8 to 9, ");  // saved at step 4
  const Outcome again = run_program({"resume", run_of("killed"), "--profile"});
  ASSERT_EQ(again.exit_code, 0) << again.output;
  expect_in(again.output, "profile: none; no step was left to take");
  EXPECT_EQ(profile_of(run_of("killed")).at("last_step").as_int(), 9) << "the earlier one stays";
}

TEST_F(ProfiledRun, WhatIsNoNumberOfStepsIsBadInputAndLeavesNoRun) {
  for (const char* steps : {"0", "-1", "x", "1.5", "100000"}) {
    SCOPED_TRACE(steps);
    const Outcome outcome = train("bad", {str("--profile=", steps)});
    EXPECT_EQ(outcome.exit_code, 2);
    expect_in(outcome.output,
              str("--profile: '", steps, "' is not a number of steps; write 1 to 99999, or --profile last for 20"));
  }
  const Outcome swallowed = run_program({"train", "--profile", folder_ / "small.yaml", folder_ / "small.yaml"});
  EXPECT_EQ(swallowed.exit_code, 2);
  expect_in(swallowed.output, "is not a number of steps");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad"));
}

}  // namespace
}  // namespace tessera::testing

// A run that is killed and resumed ends with the bytes of an uninterrupted run.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

class Resume : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "small.yaml", kSmallExperiment); }

  // The first run of a test measures; the others replay its choices.
  std::string train(const std::string& runs, const std::vector<std::string>& overrides = {}) {
    const Outcome outcome = run_program(joined(command(runs), overrides));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    const std::string run = folder_ / (runs + "/small/1");
    if (decisions_.empty()) decisions_ = run + "/decisions.json";
    return run;
  }
  std::vector<std::string> command(const std::string& runs) const {
    std::vector<std::string> words{"train", folder_ / "small.yaml", "--runs", folder_ / runs};
    return decisions_.empty() ? words : joined(words, {"--decisions", decisions_});
  }

  TemporaryFolder folder_;
  std::string decisions_;
};

TEST_F(Resume, KilledAtRandomStepsEndsWithTheSameBytes) {
  const std::string straight = result_of(train("straight"));

  std::mt19937 random(20261121);
  std::vector<int> steps;
  for (int step = 1; step <= 39; ++step) {
    if (step != 27) steps.push_back(step);  // 27 is the factorisation
  }
  std::shuffle(steps.begin(), steps.end(), random);
  steps.resize(5);
  std::sort(steps.begin(), steps.end());

  const std::string run = folder_ / "killed/small/1";
  std::vector<std::string> arguments = command("killed");
  for (const int step : steps) {
    const Outcome killed = run_program(arguments, {str("TESSERA_KILL_AT=step:", step)});
    ASSERT_EQ(killed.exit_code, 128 + 9) << "step " << step << ": " << killed.output;
    arguments = {"resume", run};
  }
  const Outcome finished = run_program(arguments);
  ASSERT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_TRUE(result_of(run) == straight);
}

// No place between a pass, its files, the checkpoint and the report after it is safe from kills: each is tried.
TEST_F(Resume, KilledAroundAPassReportsTheSame) {
  const std::string straight = result_of(train("straight"));
  const std::vector<std::string> places{"factorise:1", "save:27", "step:33", "save:40", "factorise:3", "save:45", "save:47"};
  const std::string run = folder_ / "killed/small/1";
  std::vector<std::string> arguments = command("killed");
  for (const std::string& place : places) {
    const Outcome killed = run_program(arguments, {"TESSERA_KILL_AT=" + place});
    ASSERT_EQ(killed.exit_code, 128 + 9) << place << ": " << killed.output;
    arguments = {"resume", run};
  }
  const Outcome finished = run_program(arguments);
  ASSERT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_TRUE(result_of(run) == straight) << read_bytes(run + "/report.md");
  const std::string layers = read_bytes(run + "/layers.csv");
  EXPECT_NE(layers.find("\nfactorised,conv2,"), std::string::npos) << layers;
  EXPECT_NE(layers.find("\nagain,fc,"), std::string::npos) << layers;
}

TEST_F(Resume, OfAFinishedRunLeavesItAsItIs) {
  const std::string run = train("straight");
  const auto loss_of = [&] { return parse_json(read_bytes(run + "/status.json"), "status.json").at("loss").as_double(); };
  const std::string result = result_of(run);
  const double loss = loss_of();
  EXPECT_GT(loss, 0);
  const Outcome outcome = run_program({"resume", run});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("it was finished, nothing is left to do"), std::string::npos) << outcome.output;
  EXPECT_EQ(loss_of(), loss);
  EXPECT_TRUE(result_of(run) == result);
}

TEST_F(Resume, BeforeTheFirstCheckpointStartsAgainAndSaysSo) {
  const Outcome killed = run_program(command("killed"), {"TESSERA_KILL_AT=step:1"});
  ASSERT_EQ(killed.exit_code, 128 + 9) << killed.output;
  const std::string run = folder_ / "killed/small/1";
  const Outcome status = run_program({"status", run});
  EXPECT_NE(status.output.find("no checkpoint yet"), std::string::npos) << status.output;
  EXPECT_EQ(status.output.find("loss"), std::string::npos) << status.output;
  const Outcome resumed = run_program({"resume", run});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("resuming at stage dense, step 0: the run has no checkpoint yet"), std::string::npos)
      << resumed.output;
}

TEST_F(Resume, AnotherSeedGivesOtherBytes) {
  EXPECT_FALSE(result_of(train("one")) == result_of(train("two", {"seed=4"})));
}

TEST_F(Resume, LoaderThreadsChangeNoByte) {
  const std::string none = result_of(train("none", {"threads.loader=0"}));
  EXPECT_TRUE(result_of(train("one", {"threads.loader=1"})) == none);
  EXPECT_TRUE(result_of(train("four", {"threads.loader=4"})) == none);
}

TEST_F(Resume, WaitingForTheDiskChangesNoByte) {
  EXPECT_TRUE(result_of(train("beside", {"checkpoint.async=true"})) == result_of(train("waits", {"checkpoint.async=false"})));
}

// The background save fails some steps after it was requested. The run must not end as if all were well.
TEST_F(Resume, AFailedSaveBesideTrainingEndsTheRun) {
  const std::string run = folder_ / "run/small/1";
  RunningProgram program(
      {"train", folder_ / "small.yaml", "--runs", folder_ / "run", "stages[0].train=200e", "checkpoint.every=1e"});
  ASSERT_TRUE(program.wait_for("dense epoch 1 "));
  std::filesystem::rename(run + "/checkpoints", run + "/gone");
  const Outcome outcome = program.finish();
  expect_outcome(outcome, 1, "/checkpoints");
  expect_in(outcome.output, "No such file or directory");
  EXPECT_NE(read_bytes(run + "/status.json").find("failed"), std::string::npos);
}

TEST_F(Resume, RefusesAChangeOfThePastAndNamesFork) {
  const std::string run = train("run");
  expect_outcome(run_program({"resume", run, "optimizer.lr=0.5"}), 2, "tessera fork");
}

TEST_F(Resume, ForkGoesOnFromAStageWithOtherSettings) {
  const std::string run = train("run");
  const Outcome outcome = run_program({"fork", run, "--at", "dense", "stages[2].optimizer.lr=0.02", "--runs", folder_ / "forks"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_FALSE(result_of(folder_ / "forks/small/1") == result_of(run));
}

}  // namespace
}  // namespace tessera::testing

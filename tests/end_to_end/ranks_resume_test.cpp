// Runs in several processes that are resumed with the same number of processes or another.
#include <gtest/gtest.h>

#include <signal.h>

#include "tests/end_to_end/ranks_fixture.h"
#include "tests/end_to_end/small_text.h"

namespace tessera::testing {
namespace {

// The network has batch norms, whose statistics are averaged over the ranks.
TEST_F(Ranks, KilledAndResumedEndWithTheSameBytes) {
  const Outcome straight = run_ranks(2, train("small.yaml", "straight"));
  ASSERT_EQ(straight.exit_code, 0) << straight.output;
  std::vector<std::string> words = train("small.yaml", "killed", {"--decisions", run_in("straight") + "/decisions.json"});
  for (const std::string place : {"step:9", "saving:26", "save:26", "factorise:3", "step:45"}) {
    const Outcome killed = run_ranks(2, words, {"TESSERA_KILL_AT=" + place});
    ASSERT_EQ(killed.exit_code, 128 + 9) << place << ": " << killed.output;
    if (place == "saving:26") {
      EXPECT_TRUE(holds_unfinished_save(run_in("killed")));
    }
    words = {"resume", run_in("killed")};
  }
  const Outcome ended = run_ranks(2, words);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(ended.output.find("not promised"), std::string::npos) << ended.output;
  EXPECT_TRUE(result_of(run_in("killed")) == result_of(run_in("straight")));
}

// Each rank keeps the error of its compressed gradients, and rank 0 saves it, also when all ranks are told to stop.
TEST_F(Ranks, WhatCompressedGradientsLeaveOutIsSaved) {
  write_bytes(folder_ / "power.yaml", read_bytes(folder_ / "small.yaml") + "power_sgd: {rank: 1}\n");
  const std::string longer = "stages[0].train=600s";  // longer than until the signal
  const Outcome straight = run_ranks(2, train("power.yaml", "straight", {longer}));
  ASSERT_EQ(straight.exit_code, 0) << straight.output;
  const std::vector<std::string> decisions{longer, "--decisions", run_in("straight") + "/decisions.json"};
  const std::vector<std::string> words = train("power.yaml", "resumed", decisions);
  ASSERT_EQ(run_ranks(2, words, {"TESSERA_KILL_AT=step:13"}).exit_code, 128 + 9);
  RunningProgram program(started(2, {"resume", run_in("resumed")}), kRanksEnvironment);
  ASSERT_TRUE(program.wait_for("resuming at stage dense"));
  program.send(SIGUSR1);
  const Outcome stopped = program.finish();
  ASSERT_EQ(stopped.exit_code, 3) << stopped.output;
  ASSERT_EQ(run_ranks(2, {"resume", run_in("resumed")}).exit_code, 0);
  EXPECT_TRUE(result_of(run_in("resumed")) == result_of(run_in("straight")));
  ASSERT_EQ(run_ranks(2, train("small.yaml", "plain", decisions)).exit_code, 0);
  EXPECT_FALSE(result_of(run_in("straight")) == result_of(run_in("plain"))) << "gradients were not compressed";
}

TEST_F(Ranks, ResumeOfAnotherNumberIsWarnedAbout) {
  ASSERT_EQ(run_ranks(2, train("small.yaml", "r"), {"TESSERA_KILL_AT=step:9"}).exit_code, 128 + 9);
  expect_outcome(run_ranks(1, {"resume", run_in("r")}), 0,
                 "resume: ranks was 2, is 1; the same bytes as an uninterrupted run are not promised; gradients are added up in "
                 "another order, and batch norms normalise over 32 samples at a time");
  expect_in(read_bytes(run_in("r") + "/train.log"), "resume: ranks was 2, is 1; ");
}

TEST_F(Ranks, ResumeTellsWhatAnEarlierOneHasChanged) {
  ASSERT_EQ(run_ranks(2, train("small.yaml", "r", {"stages[0].train=3e"}), {"TESSERA_KILL_AT=step:9"}).exit_code, 128 + 9);
  const Outcome one = run_ranks(1, {"resume", run_in("r")}, {"TESSERA_KILL_AT=step:14"});
  EXPECT_EQ(one.exit_code, 128 + 9);
  EXPECT_EQ(count_of(one.output, "not promised"), 1) << one.output;
  const Outcome two = run_ranks(2, {"resume", run_in("r")});
  expect_outcome(
      two, 0, "resume: an earlier one found that ranks was 2, is 1; the same bytes as an uninterrupted run are not promised\n");
  EXPECT_EQ(count_of(two.output, "not promised"), 1) << two.output;
}

// Resumes a run that one process began with all processors.
TEST_F(Ranks, ResumeMayChangeTheThreadsOfEach) {
  const std::vector<std::string> words = train("small.yaml", "r", {"stages[0].train=3e", "threads.compute=2"});
  ASSERT_EQ(run_ranks(1, words, {"TESSERA_KILL_AT=step:9"}).exit_code, 128 + 9);
  expect_outcome(run_ranks(2, {"resume", run_in("r"), "threads.compute=1"}), 0,
                 "resume: compute_threads was 2, is 1; the same bytes as an uninterrupted run are not promised");
  expect_in(read_bytes(run_in("r") + "/config.resolved.yaml"), "compute: 1");
}

TEST_F(Ranks, MoreOfThemGoOnFromWhatFewerHaveSaved) {
  const std::vector<std::string> words = train("small.yaml", "r", {"stages[0].train=3e"});
  ASSERT_EQ(run_ranks(1, words, {"TESSERA_KILL_AT=step:9"}).exit_code, 128 + 9);
  const Outcome two = run_ranks(2, {"resume", run_in("r")}, {"TESSERA_KILL_AT=step:14"});
  EXPECT_EQ(two.exit_code, 128 + 9);
  expect_in(two.output,
            "resume: ranks was 1, is 2; the same bytes as an uninterrupted run are not promised; gradients are added up "
            "in another order, and batch norms normalise over 16 samples at a time");
  const Outcome four = run_ranks(4, {"resume", run_in("r")});
  expect_outcome(four, 0, "resume: ranks was 1, is 4; ");
  expect_in(four.output, "batch norms normalise over 8 samples at a time");
  const std::string log = read_bytes(run_in("r") + "/train.log");
  expect_in(log, "resume: ranks was 1, is 2; ");
  expect_in(log, "resume: ranks was 1, is 4; ");
  EXPECT_NE(read_bytes(run_in("r") + "/status.json").find("\"ranks\": 4"), std::string::npos);
  expect_outcome(run_ranks(1, {"status", run_in("r")}), 0, ", 4 ranks)");
}

TEST_F(Ranks, ANetworkWithoutBatchNormsIsNotToldOfThem) {
  const std::vector<std::string> words = train("plain.yaml", "r", {"stages[0].train=3e"});
  ASSERT_EQ(run_ranks(2, words, {"TESSERA_KILL_AT=step:9"}).exit_code, 128 + 9);
  const Outcome resumed = run_ranks(1, {"resume", run_in("r")});
  expect_outcome(resumed, 0,
                 "gradients are added up in another order; dropout draws other masks; threads.compute is 1 in each process, and "
                 "resume RUN threads.compute=... changes it\n");
  EXPECT_EQ(resumed.output.find("batch norms"), std::string::npos) << resumed.output;
}

TEST_F(Ranks, ResumeTellsWhatBecomesOfWhatCompressedGradientsLeftOut) {
  const std::vector<std::string> words = train("plain.yaml", "r", {"stages[0].train=3e", "power_sgd={rank: 1}"});
  ASSERT_EQ(run_ranks(2, words, {"TESSERA_KILL_AT=step:9"}).exit_code, 128 + 9);
  expect_outcome(run_ranks(1, {"resume", run_in("r")}), 0,
                 "; rank 0 goes on with the sum of what compressed gradients have left out; threads.compute is 1 in each "
                 "process, and resume RUN threads.compute=... changes it\n");
}

TEST_F(Ranks, ResumeTellsHowMaskedTokensAreWeighed) {
  write_bytes(folder_ / "a.txt", numbered_lines(60));
  write_bytes(folder_ / "b.txt", numbered_lines(20, "milk"));
  std::string masked = changed(changed(kSmallGpt, "name: gpt\nseed", "name: small\nseed"), "micro_batch: 4\n", "");
  masked = changed(changed(masked, "batch: 8}", "batch: 8, task: masked-token}"), "vocabulary: 256", "vocabulary: 257");
  write_bytes(folder_ / "masked.yaml", masked);
  ASSERT_EQ(run_ranks(2, train("masked.yaml", "r"), {"TESSERA_KILL_AT=step:9"}).exit_code, 128 + 9);
  expect_outcome(
      run_ranks(1, {"resume", run_in("r")}), 0,
      "in another order; the loss weighs the shares of the ranks alike, however many targets each has; threads.compute ");
}

}  // namespace
}  // namespace tessera::testing

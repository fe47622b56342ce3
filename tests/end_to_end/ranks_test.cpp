// Runs that mpirun starts in several processes.
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/ranks_program.h"
#include "tests/end_to_end/small_run.h"
#include "tests/end_to_end/small_text.h"

namespace tessera::testing {
namespace {

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Ranks : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string small =
        changed(small_experiment_of_ranks(), "{out: 16, ", "{out: 96, ");  // for which ways to compute are timed
    write_bytes(folder_ / "small.yaml", small);
    write_bytes(folder_ / "plain.yaml", changed(small, "    - {batch_norm: {name: bn1}}\n", ""));
  }
  std::vector<std::string> train(const std::string& file, const std::string& runs,
                                 const std::vector<std::string>& more = {}) const {
    return joined({"train", folder_ / file, "--runs", folder_ / runs}, more);
  }
  // Trains below "together<ranks>" and once more, in one process, below "alone<ranks>".
  void expect_as_one_process(const std::string& file, int ranks, const std::string& below = "", int batch = 32) {
    SCOPED_TRACE(str(file, ", ", ranks));
    const std::string together = str(below, "together", ranks), alone = str(below, "alone", ranks);
    const Outcome outcome = run_ranks(ranks, train(file, together));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "run folder: "), 1) << outcome.output;
    const std::vector<std::string> choices{"--decisions", run_in(together) + "/decisions.json"};
    const Outcome one = run_ranks(1, joined(train(file, alone, {str("micro_batch=", batch / ranks)}), choices));
    ASSERT_EQ(one.exit_code, 0) << one.output;
    EXPECT_TRUE(result_of(run_in(together)) == result_of(run_in(alone)));
    EXPECT_NE(read_bytes(run_in(together) + "/env.json").find(str("\"ranks\": ", ranks)), std::string::npos);
  }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/small/1"); }

  TemporaryFolder folder_;
};

// Weights, momentum, averages, dropout, augmentation, two factorisations, metrics and report.
TEST_F(Ranks, HaveTheBytesOfOneProcessInMicroBatches) {
  for (const int ranks : {2, 4}) {
    expect_as_one_process("plain.yaml", ranks);
    const std::string decisions = read_bytes(run_in(str("together", ranks)) + "/decisions.json");
    for (const std::string choice : {"conv2d.forward n", "execution tucker2_conv2d "}) {
      EXPECT_NE(decisions.find(choice), std::string::npos) << choice << ": nothing was timed in a step";
    }
  }
}

// Hooks that project, that learn from another network, that ask for gradients, that look at those of a step, and that mask.
TEST_F(Ranks, HooksHaveTheBytesOfOneProcess) {
  const std::string plain = read_bytes(folder_ / "plain.yaml");
  const std::size_t stages = plain.find("stages:"), rest = plain.find("checkpoint:");
  ASSERT_LT(stages, rest);
  const std::string hooks = R"(stages:
  - {name: dense, train: 6s}
  - {name: held, train: 10s, admm: {layers: conv2, format: tucker2, ranks: {out: 6, in: 6}, keep: always, rho: 1, update: 3s}}
  - {name: factored, factorise: {from: held}}
  - {name: tuned, train: 6s, distill: {from: dense, temperature: 3, weight: 0.7}}
  - name: pruned
    train: 10s
    prune: {layers: fc, score: taylor, score_batches: 2, sparsity: {target: 0.8, begin: 2s, end: 8s, every: 2s}}
)";
  const std::string rigl = R"(stages:
  - {name: factored, factorise: {keep: always, layers: fc, format: svd, ranks: {rank: 4}}}
  - {name: sparse, train: 12s, rigl: {sparsity: 0.8, scope: layer, every: 4s}}
)";
  // Masks that follow dense weights, ADMM towards zeros, and forwards that are computed twice.
  const std::string masks = R"(recompute: true
stages:
  - {name: dense, train: 4s}
  - {name: sparse, train: 8s, prune: {layers: fc, pattern: n_m, sr_ste: {freeze: 6s}}}
  - {name: held, train: 8s, admm: {layers: conv1, sparsity: 0.7, rho: 1, update: 3s}}
  - {name: factored, factorise: {keep: always, layers: conv2, format: tucker2, ranks: {out: 8, in: 4}}, train: 4s}
)";
  write_bytes(folder_ / "masks.yaml", plain.substr(0, stages) + masks + plain.substr(rest));
  write_bytes(folder_ / "hooks.yaml", plain.substr(0, stages) + hooks + plain.substr(rest));
  write_bytes(folder_ / "rigl.yaml", plain.substr(0, stages) + rigl + plain.substr(rest));
  expect_as_one_process("hooks.yaml", 2, "hooks");
  expect_as_one_process("rigl.yaml", 2, "rigl");
  expect_as_one_process("masks.yaml", 2, "masks");
}

// Windows of a text are shared out, and each rank's sums are of its own tokens.
TEST_F(Ranks, AGptHasTheBytesOfOneProcess) {
  write_bytes(folder_ / "a.txt", numbered_lines(60));
  write_bytes(folder_ / "b.txt", numbered_lines(20, "milk"));
  std::string gpt = changed(changed(kSmallGpt, "name: gpt\nseed", "name: small\nseed"), "micro_batch: 4\n", "");
  gpt = changed(gpt, "length: 16}", "length: 16, dropout: 0.1}");
  const std::string stages = R"(stages:
  - {name: pretrain, train: 1e}
  - {name: factored, factorise: {layers: "blocks.*.mlp.*", format: svd, ranks: {rank: 4}, keep: always}}
  - {name: tuned, train: 6s}
)";
  write_bytes(folder_ / "gpt.yaml", changed(gpt, "stages: [{name: pretrain, train: 3e}]\n", stages));
  for (const int ranks : {2, 4}) expect_as_one_process("gpt.yaml", ranks, "gpt", 8);
}

// A hook computes before the first step, on shapes that nobody has timed yet.
TEST_F(Ranks, WhatIsTimedWhenAStageBeginsIsTold) {
  const std::string plain = read_bytes(folder_ / "plain.yaml");
  const std::string pruned =
      "stages:\n  - {name: pruned, train: 4s, prune: {layers: fc, score: taylor, sparsity: {target: 0.8, schedule: one_shot}}}\n";
  write_bytes(folder_ / "taylor.yaml", plain.substr(0, plain.find("stages:")) + pruned + plain.substr(plain.find("checkpoint:")));
  const Outcome outcome = run_ranks(2, train("taylor.yaml", "r"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(read_bytes(run_in("r") + "/decisions.json").find("conv2d.forward n"), std::string::npos);
}

TEST_F(Ranks, AChoiceThatIsNotOfferedIsWarnedAbout) {
  const std::vector<std::string> words =
      train("plain.yaml", "r", {"stages[0].train=4s", "~stages[3]", "~stages[2]", "~stages[1]"});
  ASSERT_EQ(run_ranks(2, words).exit_code, 0);
  Value decisions = parse_json(read_bytes(run_in("r") + "/decisions.json"), "decisions.json");
  Value& choices = *decisions.find("decisions");
  ASSERT_FALSE(choices.as_map().empty());
  choices.set(choices.as_map().front().key, "abacus");
  write_bytes(folder_ / "other.json", to_json(decisions));
  expect_outcome(run_ranks(2, joined(words, {"--decisions", folder_ / "other.json"})), 0,
                 "was decided as 'abacus', which is not offered here");
}

// With batch norms, whose statistics are the ranks' means.
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

// Each rank keeps what its gradients leave out, and rank 0 saves it: also when all are told to stop.
TEST_F(Ranks, WhatCompressedGradientsLeaveOutIsSaved) {
  write_bytes(folder_ / "power.yaml", read_bytes(folder_ / "small.yaml") + "power_sgd: {rank: 1}\n");
  const std::string longer = "stages[0].train=600s";  // than until the signal comes
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
                 "gradients are added up in another order; dropout draws other masks; threads.compute stays 1 in each process\n");
  EXPECT_EQ(resumed.output.find("batch norms"), std::string::npos) << resumed.output;
}

TEST_F(Ranks, ResumeTellsWhatBecomesOfWhatCompressedGradientsLeftOut) {
  const std::vector<std::string> words = train("plain.yaml", "r", {"stages[0].train=3e", "power_sgd={rank: 1}"});
  ASSERT_EQ(run_ranks(2, words, {"TESSERA_KILL_AT=step:9"}).exit_code, 128 + 9);
  expect_outcome(run_ranks(1, {"resume", run_in("r")}), 0,
                 "; rank 0 goes on with the sum of what compressed gradients have left out; threads.compute stays 1 in each "
                 "process\n");
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

TEST_F(Ranks, ASignalStopsAllOfThemAndEverythingIsSaved) {
  RunningProgram program(started(2, train("small.yaml", "r", {"stages[0].train=3000e"})), kRanksEnvironment);
  ASSERT_TRUE(program.wait_for("dense epoch 1"));
  program.send(SIGUSR1);
  expect_outcome(program.finish(), 3, "stopped; everything is saved");
}

TEST_F(Ranks, AnErrorOfOneEndsAll) {
  const Outcome outcome = run_ranks(2, train("small.yaml", "r", {"data.batch=31"}));
  expect_outcome(outcome, 2, "data.batch is 31; 2 ranks cannot share it equally");
  EXPECT_EQ(count_of(outcome.output, "cannot share it equally"), 1) << outcome.output;
  EXPECT_FALSE(std::filesystem::exists(run_in("r")));
  const Outcome bad = run_ranks(2, train("small.yaml", "r", {"data.btach=32"}));
  expect_outcome(bad, 2, "data.btach: unknown key");
  EXPECT_EQ(count_of(bad.output, "unknown key"), 1) << bad.output;
  expect_outcome(run_ranks(2, train("plain.yaml", "r", {"optimizer.lr=1e30"})), 1, "replaying steps");
}

TEST_F(Ranks, AWrongWordIsToldOnceAndHelpToo) {
  const Outcome wrong = run_ranks(2, train("small.yaml", "r", {"--bogus"}));
  EXPECT_EQ(wrong.exit_code, 2) << wrong.output;
  EXPECT_EQ(count_of(wrong.output, "--bogus"), 1) << wrong.output;
  const Outcome help = run_ranks(2, {"train", "--help"});
  EXPECT_EQ(help.exit_code, 0) << help.output;
  EXPECT_EQ(help.output, run_ranks(1, {"train", "--help"}).output);
}

TEST_F(Ranks, EachHasALogOfItsOwn) {
  ASSERT_EQ(run_ranks(2, train("small.yaml", "r", {"stages[0].train=4s", "~stages[3]", "~stages[2]", "~stages[1]"})).exit_code,
            0);
  const std::string log = read_bytes(run_in("r") + "/train.rank1.log");
  for (const char* const part : {"Z rank 1 of 2, process ", ", 1 compute threads\n", "Z stage dense: from step 0 of 4\n",
                                 "Z stage dense: step 4, ", " ms a step", "Z finished\n"}) {
    expect_in(log, part);
  }
  EXPECT_FALSE(std::filesystem::exists(run_in("r") + "/train.rank0.log")) << "that is train.log";
}

TEST_F(Ranks, AProfileTellsWhatWaitsForOthers) {
  const Outcome outcome = run_ranks(2, train("small.yaml", "r", {"--profile", "3"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const Value profile = parse_json(read_bytes(run_in("r") + "/profile.json"), "profile.json");
  std::set<std::string> waits;
  for (const Value& row : profile.at("rows").as_list()) {
    if (row.at("part").as_string() == "exchange") waits.insert(row.at("what").as_string());
  }
  EXPECT_EQ(waits, (std::set<std::string>{"gradients", "losses", "statistics"}));
}

// What a machine does that hangs, and one that is switched off.
TEST_F(Ranks, ARankThatStopsOrIsKilledEndsAll) {
  const auto expect_end = [&](int rank, int signal, int exit_code, const std::string& part) {
    const std::string runs = str("rank", rank, "signal", signal);
    SCOPED_TRACE(runs);
    RunningProgram program(started(2, train("small.yaml", runs, {"stages[0].train=3000e"})), kRanksEnvironment);
    ASSERT_TRUE(program.wait_for("dense epoch 2"));
    const std::map<int, pid_t> processes = processes_of(program);
    ASSERT_EQ(processes.size(), 2u);
    ASSERT_EQ(kill(processes.at(rank), signal), 0);
    expect_outcome(program.finish(), exit_code, part);
    for (const auto& [each, process] : processes) EXPECT_TRUE(ends_soon(process)) << "rank " << each << " is left behind";
    expect_outcome(run_ranks(2, {"resume", run_in(runs), "--time-limit", "1s"}), 3, "stopped; everything is saved");
  };
  expect_end(1, SIGSTOP, 1, "rank 1 has not answered for 7 seconds; all ranks end, and the last checkpoint stands");
  expect_end(0, SIGSTOP, 1, "rank 0 has not answered for 7 seconds");
  expect_end(1, SIGKILL, 128 + SIGKILL, "");
}

// Each rank looks for the text in the folder that it was started in, of which one has none.
TEST_F(Ranks, WhatAnotherRankFailedOfIsToldByRank0) {
  write_bytes(folder_ / "text.yaml", R"(
version: 1
name: small
threads: {compute: 1, loader: 0}
data: {name: text, files: [/proc/self/cwd/a.txt], split: [80, 20, 0], tokenizer: bytes, sequence: 16, batch: 4}
model: {name: gpt, layers: 1, width: 16, heads: 2}
optimizer: {name: adamw, lr: 0.001}
stages: [{name: dense, train: 4s}]
)");
  std::filesystem::create_directories(folder_ / "with");
  std::filesystem::create_directories(folder_ / "without");
  write_bytes(folder_ / "with/a.txt", numbered_lines(60));
  const auto in = [&](const char* below) {
    return joined({"-n", "1", "--bind-to", "none", "-wdir", folder_ / below, TESSERA_OF_RANKS}, train("text.yaml", "r"));
  };
  const auto both = [&](const char* first, const char* second) { return joined(joined(in(first), {":"}), in(second)); };
  const Outcome outcome = run_program(both("with", "without"), joined(kRanksEnvironment, {"TESSERA_CACHE="}));
  EXPECT_EQ(outcome.exit_code, 1);
  expect_in(outcome.output, "rank 1: /proc/self/cwd/a.txt: ");
  EXPECT_EQ(count_of(outcome.output, "a.txt: "), 1) << outcome.output;
  std::filesystem::create_directories(folder_ / "other");
  write_bytes(folder_ / "other/a.txt", numbered_lines(60, "wine"));
  const Outcome other = run_program(both("with", "other"), joined(kRanksEnvironment, {"TESSERA_CACHE="}));
  expect_outcome(other, 1, "ranks differ in the data: ");
  EXPECT_EQ(count_of(other.output, "ranks differ"), 1) << other.output;
  EXPECT_FALSE(std::filesystem::exists(run_in("r")));
  const Outcome good = run_program(both("with", "with"), joined(kRanksEnvironment, {"TESSERA_CACHE="}));
  EXPECT_EQ(good.exit_code, 0) << good.output;
}

// One rank computes with other instructions.
TEST_F(Ranks, RanksThatDifferAreRefused) {
  std::vector<std::string> words = started(1, train("small.yaml", "r"));
  words.insert(words.end(), {":", "-x", "ONEDNN_MAX_CPU_ISA=SSE41"});
  const Outcome outcome = run_program(joined(words, started(1, train("small.yaml", "r"))), kRanksEnvironment);
  expect_outcome(outcome, 1, "ranks differ in the program or machine: onednn is ");
  EXPECT_EQ(count_of(outcome.output, "ranks differ"), 1) << outcome.output;
  EXPECT_FALSE(std::filesystem::exists(run_in("r")));
}

// A byte behind the end of a program changes nothing that it does.
TEST_F(Ranks, AnotherProgramIsRefusedBeforeAnythingIsRead) {
  const std::string other = folder_ / "other";
  std::filesystem::copy(TESSERA_OF_RANKS, other);
  write_bytes(other, read_bytes(other) + '\n');
  std::vector<std::string> words = started(1, train("small.yaml", "r", {"no.such=key"}));
  std::vector<std::string> second = started(1, train("small.yaml", "r"));
  second[static_cast<std::size_t>(std::ranges::find(second, TESSERA_OF_RANKS) - second.begin())] = other;
  words.push_back(":");
  const Outcome outcome = run_program(joined(words, second), kRanksEnvironment);
  expect_outcome(outcome, 1, "ranks differ in the program: file is ");
  EXPECT_EQ(count_of(outcome.output, "ranks differ"), 1) << outcome.output;
  EXPECT_EQ(outcome.output.find("no.such"), std::string::npos) << outcome.output;
}

// The words of the others are not read: what rank 0 was told holds for all.
TEST_F(Ranks, TheExperimentIsThatOfRank0) {
  const std::vector<std::string> small{"stages[0].train=4s", "~stages[3]", "~stages[2]", "~stages[1]"};
  std::vector<std::string> words = started(1, train("small.yaml", "r", joined(small, {"optimizer.lr=0.02"})));
  words.push_back(":");
  const Outcome outcome =
      run_program(joined(words, started(1, train("small.yaml", "r", {"optimizer.lr=0.5", "no.such=key"}))), kRanksEnvironment);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(read_bytes(run_in("r") + "/config.resolved.yaml"), "lr: 0.02");
}

TEST_F(Ranks, WhatTheyCannotDoIsRefused) {
  expect_outcome(run_ranks(2, {"plan", folder_ / "small.yaml"}), 2, "only train and resume run in several");
  expect_outcome(run_ranks(2, train("small.yaml", "r", {"--seeds", "1,2"})), 2, "--seeds: several processes train one seed");
  expect_outcome(run_ranks(1, {"schema"}, {"PMI_SIZE=2"}), 2, "mpirun has started 2 processes, of which this one sees 1");
}

}  // namespace
}  // namespace tessera::testing

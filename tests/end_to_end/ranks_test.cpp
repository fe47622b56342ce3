// Runs of several processes started by mpirun.
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/config/value.h"
#include "tests/end_to_end/ranks_fixture.h"
#include "tests/end_to_end/small_text.h"

namespace tessera::testing {
namespace {

// The runs have weights, momentum, averages, dropout, augmentation, two factorisations, metrics and a report.
TEST_F(Ranks, HaveTheBytesOfOneProcessInMicroBatches) {
  for (const int ranks : {2, 4}) {
    expect_as_one_process("plain.yaml", ranks);
    const std::string decisions = read_bytes(run_in(str("together", ranks)) + "/decisions.json");
    for (const std::string choice : {"conv2d.forward n", "execution tucker2_conv2d "}) {
      EXPECT_NE(decisions.find(choice), std::string::npos) << choice << ": nothing was timed in a step";
    }
  }
}

// Hooks that project, learn from another network, request gradients, look at a step's gradients, or mask.
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
  // Masks that follow dense weights, ADMM towards sparsity, and recomputed forward passes.
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

// Windows of a text are shared out. Each rank's sums count its own tokens.
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

// A hook computes before the first step, on shapes that have not been timed yet.
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

TEST_F(Ranks, CompareWhatTheyHoldWithinAnEpochToo) {
  const std::vector<std::string> words =
      train("small.yaml", "r", {"stages[0].train=7s", "~stages[3]", "~stages[2]", "~stages[1]"});
  const Outcome compared = run_ranks(2, words, {"TESSERA_COMPARE_RANKS=3", "TESSERA_LOG=debug"});
  ASSERT_EQ(compared.exit_code, 0) << compared.output;
  EXPECT_EQ(count_of(compared.output, "ranks: the same before step "), 3) << compared.output;
  expect_in(compared.output, "ranks: the same before step 6\n");
  expect_outcome(run_ranks(2, words, {"TESSERA_COMPARE_RANKS=0"}), 2,
                 "TESSERA_COMPARE_RANKS is '0'; needs a number of steps, 1 or more");
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
  const Outcome level = run_ranks(2, {"train", "--help"}, {"TESSERA_LOG=loud"});
  EXPECT_EQ(level.exit_code, 2) << level.output;
  EXPECT_EQ(count_of(level.output, "unknown level 'loud'"), 1) << level.output;
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

// A stopped rank stands for a machine that hangs, a killed one for a machine that is switched off.
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

// Each rank looks for the text in its working folder. One of these folders lacks the text.
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

// One rank computes with other vector instructions.
TEST_F(Ranks, RanksThatDifferAreRefused) {
  std::vector<std::string> words = started(1, train("small.yaml", "r"));
  words.insert(words.end(), {":", "-x", "ONEDNN_MAX_CPU_ISA=SSE41"});
  const Outcome outcome = run_program(joined(words, started(1, train("small.yaml", "r"))), kRanksEnvironment);
  expect_outcome(outcome, 1, "ranks differ in the program or machine: onednn is ");
  EXPECT_EQ(count_of(outcome.output, "ranks differ"), 1) << outcome.output;
  EXPECT_FALSE(std::filesystem::exists(run_in("r")));
}

// A byte appended to a program changes nothing that it does.
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

// The arguments of the other ranks are ignored: those of rank 0 hold for all.
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
  expect_outcome(run_ranks(1, {"schema"}, {"PMI_SIZE=2"}), 2, "mpirun has started 2 processes; this one sees 1");
}

}  // namespace
}  // namespace tessera::testing

// The phases of a network that writes text: one phase decides which layers stay compressed, and all phases are reported.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"
#include "tests/end_to_end/small_text.h"

namespace tessera::testing {
namespace {

constexpr const char* kGpt = R"(
version: 1
name: gpt
seed: 5
threads: {compute: 1, loader: 0}
data: {name: text, files: [a.txt], split: [80, 10, 10], sequence: 16, batch: 4}
model: {name: gpt, layers: 1, width: 24, heads: 2, vocabulary: 256, length: 16}
optimizer: {name: adamw, lr: 0.01}
stages:
  - {name: dense, train: 2s}
  - {name: small, train: 2s, factorise: {layers: "blocks.*.mlp.*", format: svd, ranks: {rank: 3}, keep: always, keep_for: {phase: decode}}}
checkpoint: {async: false}
report: {latency: {batch: [2], repeats: 5}}
)";

class Phases : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder_ / "a.txt", numbered_lines(90));
    write_bytes(file(), kGpt);
  }

  std::string file() const { return folder_ / "gpt.yaml"; }
  Outcome run(const std::vector<std::string>& arguments, const std::vector<std::string>& more = {}) const {
    return run_program(arguments, joined({"TESSERA_CACHE=" + folder_ / "cache"}, more));
  }
  Outcome start(const std::string& runs, const std::vector<std::string>& overrides = {},
                const std::vector<std::string>& environment = {}) const {
    return run(joined({"train", file(), "--runs", folder_ / runs}, overrides), environment);
  }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/gpt/1"); }
  static Value decisions_of(const std::string& run) {
    return parse_json(read_bytes(run + "/decisions.json"), "decisions.json").at("decisions");
  }
  static std::size_t count_of(const Value& decisions, const std::string& start) {
    std::size_t count = 0;
    for (const Value::Entry& entry : decisions.as_map()) count += entry.key.starts_with(start);
    return count;
  }

  TemporaryFolder folder_;
};

TEST_F(Phases, ThePassReportHasAllOfThem) {
  const Outcome trained = start("runs");
  expect_outcome(trained, 0, "timing the network in training dense and compressed");
  const std::string report = read_bytes(run_in("runs") + "/report.md");
  for (const char* place :
       {"\nThe network at batch 1, folded decode at length 16, 1 threads: ",
        "\nThe network at batch 2, folded inference, 1 threads: ", "\nThe network at batch 4, training, 1 threads: "}) {
    expect_in(report, place);
  }
  expect_in(read_bytes(run_in("runs") + "/layers.csv"), ",decode,");
  const Value decisions = decisions_of(run_in("runs"));
  EXPECT_EQ(count_of(decisions, "keep.layer "), 2u);
  EXPECT_EQ(count_of(decisions, "keep.network "), 1u);
  EXPECT_EQ(count_of(decisions, "speed.network "), 2u);
}

// Kills at each timing: two layers, and the network in three phases.
TEST_F(Phases, KilledInTheirTimingsARunEndsAsItsReplay) {
  ASSERT_EQ(start("count").exit_code, 0);
  const std::size_t count = decisions_of(run_in("count")).as_map().size();
  ASSERT_EQ(count, 5u);
  for (std::size_t timing = count - 4; timing <= count; ++timing) {
    const std::string runs = str("killed", timing), replayed = str("replayed", timing);
    const Outcome killed = start(runs, {}, {str("TESSERA_KILL_AT=timing:", timing)});
    ASSERT_EQ(killed.exit_code, 128 + 9) << killed.output;
    expect_outcome(run({"resume", run_in(runs)}), 0, "");
    expect_outcome(start(replayed, {"--decisions", run_in(runs) + "/decisions.json"}), 0, "");
    EXPECT_TRUE(result_of(run_in(replayed)) == result_of(run_in(runs))) << timing;
  }
}

// Another seed gives other pairs, but they take equally long.
TEST_F(Phases, DecisionsAboutSparseAttentionHoldForAnotherSeed) {
  const std::string sparse = "model.sparse={band: 3, density: 0.3}";
  expect_outcome(start("sparse", {sparse}), 0, "");
  expect_outcome(run({"train", file(), "--runs", folder_ / "other", sparse, "seed=6", "deterministic=true", "--decisions",
                      run_in("sparse") + "/decisions.json"}),
                 0, "");
}

TEST_F(Phases, AForkAndATableRefuseDecodeOfOtherNetworksToo) {
  const std::vector<std::string> bert{
      "data={name: text, files: [a.txt], split: [80, 10, 10], sequence: 16, batch: 4, task: masked-token}",
      "model={name: bert, layers: 1, width: 24, heads: 2, vocabulary: 257, length: 16}", "stages[1].factorise.keep_for={}"};
  expect_outcome(start("bert", bert), 0, "");
  const std::string why = "is not causal, so that each position changes with those behind it";
  expect_outcome(run({"fork", run_in("bert"), "--at", "dense", "stages[1].factorise.keep_for.phase=decode"}), 2,
                 "fork: stages[1].factorise.keep_for.phase: is decode, in which no network but one that writes text runs; ");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bert/gpt/2")) << "before there is a folder";
  expect_outcome(run({"resume", run_in("bert"), "report.decode={batch: [1]}"}), 0, "");
  expect_outcome(run({"table", run_in("bert")}), 2, why);
}

TEST_F(Phases, DecodeOfANetworkThatWritesNoTextIsBadInput) {
  const auto refused = [&](const std::vector<std::string>& overrides, const std::string& part) {
    expect_outcome(run(joined({"validate", file()}, overrides)), 2, part);
  };
  const std::string phase = "stages[1].factorise.keep_for.phase: is decode, in which no network but one that writes text runs; ";
  refused({"data={name: text, files: [a.txt], split: [80, 10, 10], sequence: 16, batch: 4, task: masked-token}",
           "model={name: bert, layers: 1, width: 24, heads: 2, vocabulary: 257, length: 16}"},
          phase + "'blocks.0.attn.heads' is not causal, so that each position changes with those behind it");
  refused({"data={name: glyphs, count: 48, batch: 4}", "model={name: mlp, hidden: [6]}", "stages[1].factorise.layers='*'"},
          phase + "the network reads no tokens");
  refused({"stages[1].factorise.keep_for.length=17"}, "stages[1].factorise.keep_for.length: ");
  expect_outcome(run({"validate", file(), "stages[1].factorise.keep_for.length=9"}), 0, "ok");
}

TEST_F(Phases, BenchTimesANewPosition) {
  const std::vector<std::string> asked{"bench", file(), "--phase", "decode", "--batch", "3", "--rounds", "6"};
  expect_outcome(run(asked), 0, "batch 3, folded decode at length 16, 1 threads");
  const Outcome outcome = run(joined(asked, {"--input", "8", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "batch 3, folded decode at length 8, 1 threads");
  expect_in(outcome.output, "\"phase\": \"decode\"");
  expect_outcome(run({"bench", "resnet8", "--phase", "decode"}), 2,
                 "bench: resnet8: decode is of networks that write text; the network reads no tokens");
}

TEST_F(Phases, TheTableOfARunHasThemWhereItIsAsked) {
  ASSERT_EQ(start("runs", {"report.decode={batch: [3], repeats: 5}"}).exit_code, 0);
  expect_outcome(run({"table", run_in("runs")}), 0, "| decode, batch 3: ms (p10-p90) | speed-up (p10-p90; of medians) |");
  expect_outcome(run({"validate", file(), "report.decode={}", "data={name: glyphs, count: 48, batch: 4}",
                      "model={name: mlp, hidden: [6]}", "stages=[{name: a, train: 1s}]"}),
                 2, "report.decode: is of networks that write text; the network reads no tokens");
}

TEST_F(Phases, ATableHasAColumnOfDecode) {
  write_bytes(folder_ / "t.yaml", R"(
version: 1
name: t
seeds: [1]
arms: [{name: small, experiment: gpt.yaml}, {name: dense, experiment: gpt.yaml, set: ["stages=[{name: dense, train: 2s}]"]}]
latency: {batch: [2], repeats: 5}
decode: {batch: [1], repeats: 5}
)");
  expect_outcome(run({"reproduce", folder_ / "t.yaml", "--runs", folder_ / "runs", "--results", folder_ / "results"}), 0,
                 "timing 2 networks on inputs of [16] at batch 1, decode");
  expect_in(read_bytes(folder_ / "results/t.md"), "| decode, batch 1: ms (p10-p90) | speed-up (p10-p90; of medians) |");
  expect_in(read_bytes(folder_ / "results/t.jsonl"), "\"decode\"");
}

}  // namespace
}  // namespace tessera::testing

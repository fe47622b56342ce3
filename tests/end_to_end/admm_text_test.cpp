// ADMM on a Transformer in whole runs: the linear layers of its MLPs approach low rank, are factorised at their ranks and
// fine-tuned. A run killed in the held stage or around it ends with the same bytes.
#include <gtest/gtest.h>

#include <csignal>

#include "core/config/value.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"
#include "tests/end_to_end/small_text.h"

namespace tessera::testing {
namespace {

// Global steps: 1-24 dense, 25 the pass of admm, 26-73 held, 74 factorised, 75-86 tuned.
constexpr const char* kExperiment = R"(
version: 1
name: held
seed: 5
deterministic: true
threads: {compute: 1, loader: 0}
data: {name: text, files: [lines.txt], split: [80, 10, 10], sequence: 16, batch: 16}
model: {name: gpt, layers: 2, width: 24, heads: 2, vocabulary: 256, length: 16}
optimizer: {name: adamw, lr: 0.01}
checkpoint: {every: 5s, keep: 2}
log_every: 4
stages:
  - {name: dense, train: 24s}
  - name: held
    train: 48s
    optimizer: {name: sgd, lr: 0.1, momentum: 0.5}
    admm: {layers: "blocks.*.mlp.*", format: svd, ranks: {rank: 4}, keep: always, rho: 1, update: 8s}
  - {name: factored, factorise: {from: held}}
  - {name: tuned, train: 12s}
)";

const std::vector<std::string> kWithoutAdmm{
    "~stages[1].admm", "stages[2].factorise={layers: 'blocks.*.mlp.*', format: svd, ranks: {rank: 4}, keep: always}"};

// The relative error of approximating a weight at rank 4: for weights that ADMM held, and for others.
constexpr double kNear = 0.05, kFar = 0.3;

class AdmmText : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder_ / "lines.txt", numbered_lines(90, "beer") + numbered_lines(90, "water"));
    write_bytes(folder_ / "held.yaml", kExperiment);
  }

  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/held/1"); }
  std::vector<std::string> train(const std::string& runs, const std::vector<std::string>& more = {}) const {
    return joined({"train", folder_ / "held.yaml", "--runs", folder_ / runs}, more);
  }
  Outcome run(const std::vector<std::string>& arguments, const std::vector<std::string>& more = {}) const {
    return run_program(arguments, joined({"TESSERA_CACHE=" + folder_ / "cache"}, more));
  }
  // The relative errors in one stage's rows of layers.csv, which are the four layers of two MLPs.
  std::vector<double> relative_errors(const std::string& run, const std::string& stage) const {
    std::vector<double> errors;
    for (const std::string& line : split(read_bytes(run + "/layers.csv"), '\n')) {
      if (!line.starts_with(stage + ",")) continue;
      const std::vector<std::string> cells = split(line, ',');
      EXPECT_EQ(cells.at(1), str("blocks.", errors.size() / 2, ".mlp.fc", errors.size() % 2 + 1));
      EXPECT_EQ(cells.at(6), "rank 4") << line;
      errors.push_back(std::stod(cells.at(7)));
    }
    EXPECT_EQ(errors.size(), 4U) << stage;
    return errors;
  }

  TemporaryFolder folder_;
};

TEST_F(AdmmText, MlpsBecomeLowRankAsTheyDoNotWithoutIt) {
  const Outcome outcome = run(train("runs"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "held: 4 of 4 matched layers constrained");
  expect_in(outcome.output, "factored: 4 of 4 matched layers factored");
  std::vector<Value> rows;
  for (const std::string& line : split(read_bytes(run_in("runs") + "/metrics.jsonl"), '\n')) {
    if (line.find("\"admm\":") != std::string::npos) rows.push_back(parse_json(line, "metrics.jsonl"));
  }
  ASSERT_EQ(rows.size(), 6U) << "48 steps";
  EXPECT_TRUE(rows.back().at("admm").at("layer").as_string().starts_with("blocks.")) << "the one that is farthest away";
  EXPECT_LT(rows.back().at("admm").at("relative").as_double(), kNear);
  for (const double error : relative_errors(run_in("runs"), "held")) EXPECT_GT(error, kFar) << "before it";
  for (const double error : relative_errors(run_in("runs"), "factored")) EXPECT_LT(error, kNear);
  expect_in(read_bytes(run_in("runs") + "/layers.csv"), "factored,blocks.0.mlp.fc1,linear,svd_linear,svd,from held,");

  const Outcome without = run(train("without", kWithoutAdmm));
  ASSERT_EQ(without.exit_code, 0) << without.output;
  for (const double error : relative_errors(run_in("without"), "factored")) EXPECT_GT(error, kFar);
}

TEST_F(AdmmText, KilledAndResumedItEndsWithTheSameBytes) {
  const Outcome straight = run(train("straight"));
  ASSERT_EQ(straight.exit_code, 0) << straight.output;
  std::vector<std::string> next = train("killed");
  for (const char* place : {"step:13", "admm:1", "step:29", "step:33", "save:45", "step:58", "factorise:2", "step:80"}) {
    const Outcome killed = run(next, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << place << ": " << killed.output;
    next = {"resume", run_in("killed")};
  }
  const Outcome ended = run(next);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_TRUE(result_of(run_in("killed")) == result_of(run_in("straight")));
}

}  // namespace
}  // namespace tessera::testing

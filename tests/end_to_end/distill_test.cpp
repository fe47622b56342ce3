// Distillation in whole runs: the loss matches a formula, and the teacher survives kills, forks and later stages.
#include <gtest/gtest.h>

#include <csignal>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_glyphs.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

constexpr const char* kSettings = R"(
checkpoint: {every: 4s, keep: 2}
log_every: 1
stages:
  - {name: dense, train: 2e}
  - {name: truncated, factorise: {layers: conv2, format: tucker2, ranks: {out: 4, in: 4}, keep: always}}
  - {name: tuned, train: 12s, distill: {from: dense, temperature: 3, weight: 0.7}}
  - {name: again, train: 6s}
)";

class DistillRuns : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "taught.yaml", small_glyphs("taught", kSettings)); }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/taught/1"); }
  std::vector<std::string> train(const std::string& runs, const std::vector<std::string>& more = {}) const {
    return joined({"train", folder_ / "taught.yaml", "--runs", folder_ / runs}, more);
  }

  TemporaryFolder folder_;
};

TEST_F(DistillRuns, KilledAndResumedTheyEndWithTheSameBytes) {
  ASSERT_EQ(run_program(train("straight")).exit_code, 0);
  std::vector<std::string> next = train("killed");
  for (const char* place : {"save:26", "factorise:1", "step:29", "save:31", "step:38", "save:39", "step:44"}) {
    const Outcome killed = run_program(next, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << place << ": " << killed.output;
    next = {"resume", run_in("killed")};
  }
  const Outcome ended = run_program(next);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_TRUE(result_of(run_in("killed")) == result_of(run_in("straight")));
}

TEST_F(DistillRuns, TheTeacherIsKeptAsLongAsItTeaches) {
  const Outcome killed = run_program(train("runs"), {"TESSERA_KILL_AT=step:35"});
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  const std::string teacher = "/teacher.dense.safetensors";
  EXPECT_FALSE(read_bytes(newest_checkpoint(run_in("runs")) + teacher).empty());
  const Outcome ended = run_program({"resume", run_in("runs")}, {"TESSERA_KILL_AT=save:39"});
  ASSERT_EQ(ended.exit_code, 128 + SIGKILL) << ended.output;
  const std::string end = newest_checkpoint(run_in("runs"));
  EXPECT_TRUE(end.ends_with("39")) << end;
  EXPECT_FALSE(std::filesystem::exists(end + teacher)) << "no later stage learns from it";
}

TEST_F(DistillRuns, WeightAndTemperatureMatterAndAMissingTeacherIsNamed) {
  ASSERT_EQ(run_program(train("runs")).exit_code, 0);
  const std::string whole = tensors_of(run_in("runs"));
  for (const char* change : {"stages[2].distill.weight=0.3", "stages[2].distill.temperature=1", "~stages[2].distill"}) {
    const Outcome forked = run_program({"fork", run_in("runs"), "--at", "truncated", "--runs", folder_ / change, change});
    ASSERT_EQ(forked.exit_code, 0) << forked.output;
    EXPECT_FALSE(tensors_of(folder_ / (std::string(change) + "/taught/1")) == whole) << change;
  }
  // At the end of its stage the teacher is the network itself. Later only teachers that a stage names are kept.
  const std::vector<std::string> without = train("none", {"~stages[2].distill"});
  ASSERT_EQ(run_program(without).exit_code, 0);
  const std::string add = "stages[2].distill={from: dense, temperature: 3, weight: 0.7}";
  const Outcome early = run_program({"fork", run_in("none"), "--at", "dense", "--runs", folder_ / "early", add});
  ASSERT_EQ(early.exit_code, 0) << early.output;
  EXPECT_TRUE(tensors_of(folder_ / "early/taught/1") == whole);
  // A teacher that is kept for one stage may also teach another.
  const Outcome other = run_program({"fork", run_in("runs"), "--at", "truncated", "--runs", folder_ / "other",
                                     "~stages[2].distill", "stages[3].distill={from: dense}"});
  EXPECT_EQ(other.exit_code, 0) << other.output;
  expect_outcome(
      run_program({"fork", run_in("none"), "--at", "truncated", "--runs", folder_ / "late", add}), 2,
      "fork: stages[2].distill.from cannot change: the checkpoint does not hold the network of stage dense; fork at its end");
}

TEST_F(DistillRuns, OtherVerbsKnowThem) {
  expect_outcome(run_program({"validate", folder_ / "taught.yaml", "--smoke"}), 0, "taught.yaml: ok");
  expect_outcome(run_program({"plan", folder_ / "taught.yaml"}), 0, "stage tuned");
  expect_outcome(run_program(train("none", {"stages[0].distill={temperature: 2}"})), 2,
                 "stages[0].distill: the first stage has none before it to learn from");
  expect_outcome(run_program(train("none", {"stages[1].distill={temperature: 2}"})), 2,
                 "stages[1].distill: needs train: it is a part of the loss");
  expect_outcome(run_program(train("none", {"stages[2].distill.from=again"})), 2,
                 "stages[2].distill.from: 'again' is no earlier stage");
}

}  // namespace
}  // namespace tessera::testing

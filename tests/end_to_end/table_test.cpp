// The table separates what differs, averages what differs only in the seed, and reads only the checkpoints it needs.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_text.h"
#include "tests/end_to_end/tiny_experiment.h"
#include "train/report/table.h"

namespace tessera::testing {
namespace {

constexpr const char* kBlocks = R"(
data: {name: glyphs, count: 96, test_count: 30, batch: 16, val: 0}
optimizer: {name: sgd, lr: 0.05}
stages:
  - {name: dense, train: 1e}
  - {name: factorised, factorise: {keep: always, layers: conv2, format: tucker2, ranks: {out: 4, in: 4}}}
checkpoint: {every: 2s}
report: {latency: {batch: [1], repeats: 5}}
)";

class TableOfRuns : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "tiny.yaml", tiny_experiment(kBlocks)); }

  std::string train(const std::vector<std::string>& overrides = {}) {
    const Outcome outcome = run_program(joined({"train", folder_ / "tiny.yaml", "--runs", folder_ / "runs"}, overrides));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return folder_ / ("runs/tiny/" + std::to_string(++count_));
  }
  static Table tabulate(const std::vector<std::string>& runs) { return make_table(real_vfs(), runs, nullptr); }
  static void damage(const std::string& run, const std::string& file) { write_bytes(run + "/checkpoints/" + file, "x"); }

  TemporaryFolder folder_;
  int count_ = 0;
};

TEST_F(TableOfRuns, SeedsShareRowsWhateverTheirLoadersCheckpointsAndReports) {
  const std::string one = train();
  const std::string two = train({"seed=2", "threads.loader=1", "checkpoint.keep=1", "report.latency.repeats=6", "log_every=2"});
  const Table table = tabulate({one, two});
  ASSERT_EQ(table.rows.size(), 2u);
  for (const TableRow& row : table.rows) {
    EXPECT_EQ(row.experiment, "tiny");
    EXPECT_EQ(row.values.size(), 2u);
    EXPECT_FALSE(row.range);
  }
}

// Ranks chosen by energy depend on the trained weights, and these depend on the seed.
TEST_F(TableOfRuns, SeedsWhoseRanksDifferSaySo) {
  const std::string one = train({"stages[1].factorise.ranks={energy: 0.5}"});
  std::string two = one;
  Table table;
  for (int seed = 2; seed < 12 && (table.rows.empty() || !table.rows[1].range); ++seed) {
    two = train({"stages[1].factorise.ranks={energy: 0.5}", "seed=" + std::to_string(seed)});
    table = tabulate({one, two});
  }
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_FALSE(table.rows[0].range) << "dense networks are alike";
  ASSERT_TRUE(table.rows[1].range) << "ten seeds gave the same ranks";
  EXPECT_LT(table.rows[1].range->least_parameters, table.rows[1].range->greatest_parameters);
  EXPECT_NE(to_markdown(table).find("Where seeds have different networks"), std::string::npos);
}

TEST_F(TableOfRuns, OtherRanksOfOneNameAreOtherRows) {
  const std::string one = train();
  const std::string two = train({"stages[1].factorise.ranks.in=2", "threads.compute=2", "report.latency.batch=[3]"});
  const Table table = tabulate({one, two});
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[1].experiment, "tiny (" + one + ")");
  EXPECT_EQ(table.rows[3].experiment, "tiny (" + two + ")");
  EXPECT_EQ(table.rows[3].values.size(), 1u);
  EXPECT_GT(table.rows[1].parameters, table.rows[3].parameters);
  EXPECT_EQ(table.rows[1].threads, 1);
  EXPECT_EQ(table.rows[3].threads, 2);
  const std::string text = to_markdown(table);
  EXPECT_LT(text.find("batch 1: ms"), text.find("batch 3: ms")) << text;
  EXPECT_NE(text.find(" |  |  |"), std::string::npos) << text;
  EXPECT_NE(text.find("1 threads: tiny (" + one + "); "), std::string::npos) << text;
  EXPECT_NE(text.find("2 threads: tiny (" + two + "); networks"), std::string::npos) << text;
  EXPECT_EQ(to_value(table).at("rows").as_list().at(3).at("threads"), Value(2));
}

TEST_F(TableOfRuns, DamageThatIsNotAStagesEndDoesNotMatter) {
  const std::string run = train();
  damage(run, "step-00000002/model.safetensors");
  EXPECT_EQ(tabulate({run}).rows.size(), 2u);
}

TEST_F(TableOfRuns, ADamagedStageEndIsNamed) {
  const std::string run = train();
  damage(run, "step-00000006/model.safetensors");
  const Outcome outcome = run_program({"table", run});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.output.find("no intact checkpoint of step 6"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("step-00000006/model.safetensors: file has 1 bytes"), std::string::npos) << outcome.output;
}

TEST_F(TableOfRuns, RunsOfOneRowMustHaveComeEquallyFar) {
  const std::string one = train();
  const std::string two = train({"seed=2"});
  const std::string last = "/checkpoints/step-00000007";
  std::filesystem::remove_all(two + last);
  expect_outcome(run_program({"table", one, two}), 2, "must have come equally far");
  std::filesystem::remove_all(one + last);
  EXPECT_EQ(tabulate({one, two}).rows.size(), 1u);
  expect_outcome(run_program({"table", one}), 0, one + ": has not ended; the table has its stages up to 'dense'\nevaluating");
}

TEST_F(TableOfRuns, RunsOfTwoTasksAreRefusedBeforeAnyIsEvaluated) {
  const std::string images = train();
  write_bytes(folder_ / "a.txt", numbered_lines(40));
  write_bytes(folder_ / "b.txt", numbered_lines(20, "milk"));
  write_bytes(folder_ / "gpt.yaml", kSmallGpt);
  EXPECT_EQ(run_program({"train", folder_ / "gpt.yaml", "--runs", folder_ / "runs"}).exit_code, 0);
  const std::string text = folder_ / "runs/gpt/1";
  const Outcome outcome = run_program({"table", images, text});
  expect_outcome(outcome, 2, text + " is judged by token_loss, " + images + " by accuracy; a table has runs of one task");
  EXPECT_EQ(outcome.output.find("evaluating"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace tessera::testing

#include "train/run/history.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

RunHistory three_stages() {
  RunHistory history;
  StageRecord& dense = history.of("dense");
  dense.done = true;
  dense.steps = dense.end_step = 26;
  dense.loss = 1.234567891;
  dense.last = Scored{"accuracy", 0.75};
  dense.best = Scored{"accuracy", 0.8125};
  dense.best_step = 13;
  StageRecord& factorised = history.of("factorised");
  factorised.done = true;
  factorised.end_step = 27;
  PassReport& pass = factorised.passes.emplace_back();
  pass.pass = std::string("factorise");
  LayerReport& layer = pass.layers.emplace_back();
  layer.path = std::string("conv2");
  layer.ranks_asked = std::string("out 8 in 4");
  history.of("under way").steps = 3;
  return history;
}

constexpr const char* kStages =
    "# small\n\nSeed 3. In this folder:\n\n```sh\n"
    "tessera resume .   # go on with the run\n"
    "tessera table .    # test accuracy, size and speed of its stages\n```\n\n"
    "## Stages\n\n"
    "| stage | steps | ends at step | train loss | val accuracy | best val accuracy |\n"
    "|---|---:|---:|---:|---:|---:|\n"
    "| dense | 26 | 26 | 1.23457 | 75.00 % | 81.25 % (step 13) |\n"
    "| factorised | 0 | 27 | - | - | - |\n";

TEST(RunHistory, ReportsTheStagesThatAreDone) {
  const std::string report = report_markdown("small", 3, usual_metric(), three_stages());
  EXPECT_TRUE(report.starts_with(kStages)) << report;
  EXPECT_NE(report.find("\n## factorised: factorise\n\nAsked: out 8 in 4. 0 of 1 matched layers changed.\n"), std::string::npos);
  EXPECT_EQ(report.find("under way"), std::string::npos);
}

TEST(RunHistory, ReportsSparsityWhereAStageHasPruned) {
  RunHistory history = three_stages();
  history.of("under way").sparsity = 0.5;
  EXPECT_EQ(report_markdown("small", 3, usual_metric(), history).find("sparsity"), std::string::npos)
      << "what is not done is not known";
  history.stages[1].sparsity = 0.8003;
  const RunHistory again = read<RunHistory>(parse_json(to_json(write(history)), "test"));
  const std::string report = report_markdown("small", 3, usual_metric(), again);
  EXPECT_NE(report.find("| best val accuracy | sparsity |\n|---|---:|---:|---:|---:|---:|---:|\n"), std::string::npos) << report;
  EXPECT_NE(report.find("| 81.25 % (step 13) | - |\n"), std::string::npos) << report;
  EXPECT_NE(report.find("| factorised | 0 | 27 | - | - | - | 80.03 % |\n"), std::string::npos) << report;
}

TEST(RunHistory, ARecordIsMadeOnceForAStage) {
  RunHistory history = three_stages();
  EXPECT_EQ(history.of("under way").steps, 3);
  EXPECT_EQ(history.stages.size(), 3u);
}

TEST(RunHistory, ComesBackFromACheckpoint) {
  const RunHistory history = three_stages();
  const RunHistory again = read<RunHistory>(parse_json(to_json(write(history)), "test"));
  EXPECT_EQ(report_markdown("small", 3, usual_metric(), again), report_markdown("small", 3, usual_metric(), history));
  EXPECT_EQ(layers_csv(again), layers_csv(history));
  EXPECT_EQ(again.stages.back().steps, 3);
}

TEST(RunHistory, LayersAreThoseOfEveryPass) {
  RunHistory history = three_stages();
  const std::vector<PassReport> passes = history.stages[1].passes;
  history.of("again").passes = passes;
  const std::string csv = layers_csv(history);
  EXPECT_NE(csv.find("\nfactorised,conv2,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\nagain,conv2,"), std::string::npos) << csv;
  EXPECT_TRUE(has_layers(history));
  EXPECT_FALSE(has_layers(RunHistory{}));
  EXPECT_FALSE(RunHistory{}.any_done());
}

}  // namespace
}  // namespace tessera

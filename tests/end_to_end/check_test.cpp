// Problems that only the data and the network show: all of them, before the first step and before a run folder is made.
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {
namespace {

constexpr const char* kExperiment = R"(version: 1
name: small
data: {name: glyphs, count: 100, test_count: 20, batch: 10}
model: {name: layers, layers: [{conv2d: {out: 8, kernel: 3, name: conv1}}, global_avg_pool, {linear: {out: 7}}]}
optimizer: {name: sgd}
stages:
  - {name: dense, train: 50%}
  - {name: none, factorise: {layers: conv9, ranks: {macs: 0.5}}}
  - {name: large, factorise: {layers: conv1, ranks: {out: 900, in: 1}}}
)";

class Check : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(file_, kExperiment); }

  void expect_all_problems(const Outcome& outcome) const {
    EXPECT_EQ(outcome.exit_code, 2);
    for (const char* problem : {"4:8: model: the network gives [1, 7] for one image; glyphs has 10 classes",
                                "7:26: stages[0].train: 50%", "8:29: stages[1].factorise: selector 'conv9' matches no layer",
                                "9:30: stages[2].factorise: layer 'conv1': out rank is 900"}) {
      EXPECT_NE(outcome.output.find(file_ + ":" + problem), std::string::npos) << problem << "\nis not in\n" << outcome.output;
    }
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "small.yaml";
};

TEST_F(Check, ValidateReportsWhatTheNetworkShows) { expect_all_problems(run_program({"validate", file_})); }

TEST_F(Check, TrainReportsItBeforeMakingAFolder) {
  expect_all_problems(run_program({"train", file_, "--runs", folder_ / "runs"}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(Check, DeviceThatIsNotThereIsRefused) {
  const Outcome outcome = run_program({"train", file_, "device=cuda", "--runs", folder_ / "runs"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.output.find("no CUDA backend"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace tessera::testing

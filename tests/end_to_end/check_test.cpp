// Problems that only the data and the network reveal: all are reported before the first step and before a run folder is made.
#include <gtest/gtest.h>

#include "core/support/error.h"
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
    for (const char* problem :
         {"4:8: model: the network gives [1, 7] for one image; glyphs has 10 classes", "7:26: stages[0].train: 50%",
          "8:38: stages[1].factorise.layers: selector 'conv9' matches no layer; nearest: conv1,",
          "9:59: stages[2].factorise.ranks.out: layer 'conv1': out rank is 900, the mode has size 8; "
          "legal range is 1..8"}) {
      expect_in(outcome.output, str(file_, ":", problem));
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

TEST_F(Check, NetworksOfTokensDoNotReadImages) {
  const auto problem_of = [&](const std::string& model) {
    write_bytes(file_, str("version: 1\nname: small\ndata: {name: glyphs, count: 100, test_count: 20, batch: 10}\nmodel: ", model,
                           "\noptimizer: {name: sgd}\nstages: [{name: dense, train: 1e}]\n"));
    const Outcome outcome = run_program({"validate", file_});
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.output;
  };
  EXPECT_EQ(problem_of("{name: gpt, layers: 1, width: 8, heads: 2, vocabulary: 256}"),
            file_ + ":4:8: model: gpt: input is [1, 28, 28, 1]; needs tokens [n, t]\n");
  EXPECT_EQ(problem_of("{name: layers, layers: [{embedding: {vocabulary: 256, width: 2}}, flatten, {linear: {out: 10}}]}"),
            file_ + ":4:8: model: the network reads whole numbers, but the input 'image' of glyphs is f32\n");
  EXPECT_EQ(problem_of("{name: gpt, classes: 10}"), file_ + ":4:29: model.classes: the vocabulary decides what gpt answers\n");
}

TEST_F(Check, NormsBetweenFiltersAreNotRecomputed) {
  write_bytes(file_, R"(version: 1
name: normed
data: {name: glyphs, count: 100, test_count: 20, batch: 10}
model: {name: layers, layers: [{tucker2_conv2d: {out: 8, rank_in: 1, rank_out: 4, batch_norm: true, name: conv1}},
  global_avg_pool, {linear: {out: 10}}]}
optimizer: {name: sgd}
stages:
  - {name: kept, train: 1e}
  - {name: again, train: 1e, recompute: true}
)");
  const Outcome outcome = run_program({"validate", file_});
  EXPECT_EQ(outcome.exit_code, 2);
  expect_in(outcome.output,
            str(file_, ":9:41: stages[1].recompute: layer 'conv1' (tucker2_conv2d) has batch norms between its filters, whose "
                       "running statistics another forward would move again; set batch_norm or recompute to false"));
  EXPECT_EQ(outcome.output.find("stages[0]"), std::string::npos) << outcome.output;
}

constexpr const char* kRules = R"(version: 1
name: rules
data: {name: glyphs, count: 100, test_count: 20, batch: 10}
model: {name: layers, layers: [{conv2d: {out: 8, kernel: 3, name: conv1}}, {conv2d: {out: 12, kernel: 3, name: conv2}},
  {conv2d: {out: 16, kernel: 3, name: conv3}}, global_avg_pool, {linear: {out: 10}}]}
optimizer: {name: sgd}
stages:
  - name: factorise
    factorise:
      layers: "conv*"
      ranks:
        - {layers: conv1, macs: 0.9}
        - {layers: "conv[12]", out: 13, in: 9}
        - {layers: convx, macs: 0.5}
  - {name: open, factorise: {layers: "conv*", ranks: [{layers: conv2, macs: 0.5}]}}
  - {name: again, factorise: {layers: conv2, ranks: [{layers: conv2, out: 2, in: 2}]}}
  - {name: twice, factorise: {layers: conv2, ranks: {out: 2, in: 2}}}
)";

TEST_F(Check, RankRulesAreCheckedOneByOne) {
  write_bytes(file_, kRules);
  const Outcome outcome = run_program({"validate", file_});
  EXPECT_EQ(outcome.exit_code, 2);
  std::string expected;
  for (const char* problem :
       {"12:20: stages[0].factorise.ranks[0].layers: later rules take every layer that \"conv1\" matches; the last rule that "
        "matches a layer holds",
        "13:37: stages[0].factorise.ranks[1].out: layer 'conv1': out rank is 13, the mode has size 8; legal range is 1..8",
        "13:37: stages[0].factorise.ranks[1].out: layer 'conv2': out rank is 13, the mode has size 12; legal range is 1..12",
        "13:45: stages[0].factorise.ranks[1].in: layer 'conv1': in rank is 9, the mode has size 1; legal range is 1..1",
        "13:45: stages[0].factorise.ranks[1].in: layer 'conv2': in rank is 9, the mode has size 8; legal range is 1..8",
        "14:20: stages[0].factorise.ranks[2].layers: selector 'convx' matches no layer; nearest: conv1, conv2, conv3",
        "15:54: stages[1].factorise.ranks: no rule covers 'conv1', 'conv3'; add a rule for it, or match fewer layers",
        "17:39: stages[3].factorise.layers: factorise: layers \"conv2\" match no conv2d; matched: conv2"}) {
    expected += str(file_, ":", problem, "\n");
  }
  EXPECT_EQ(outcome.output, expected);
}

// Layers that an earlier stage factorises may go back to dense. A later stage is therefore also checked on the dense layers.
TEST_F(Check, LaterStagesAreCheckedOnWhatTheVetoMayLeave) {
  const auto problems = [&](const std::string& keep) {
    write_bytes(file_, R"(
version: 1
name: twice
data: {name: glyphs, count: 64, test_count: 32, batch: 32}
model: {name: layers, layers: [{conv2d: {out: 16, kernel: 3, name: conv1}}, {conv2d: {out: 32, kernel: 3, name: conv2}},
                               global_avg_pool, {linear: {out: 10}}]}
stages:
  - {name: once, factorise: {layers: conv1, ranks: {out: 4, in: 1}, keep: )" + keep + R"(}}
  - {name: again, factorise: {layers: "conv*", ranks: {out: 20, in: 8}}}
)");
    return run_program({"validate", file_});
  };
  expect_outcome(problems("faster"), 2,
                 ":9:61: stages[1].factorise.ranks.out: layer 'conv1': out rank is 20, the mode has size 16; legal range is "
                 "1..16");
  EXPECT_EQ(problems("always").exit_code, 0);
}

TEST_F(Check, DeviceThatIsNotThereIsRefused) {
  const std::vector<std::string> no_gpu{"CUDA_VISIBLE_DEVICES="};
  expect_outcome(run_program({"train", file_, "device=cuda", "--runs", folder_ / "runs"}, no_gpu), 2, "device is cuda:0, but ");
}

TEST_F(Check, PrecisionThatTheDeviceLacksIsRefused) {
  for (const char* precision : {"tf32", "f16"}) {
    write_bytes(file_, str("version: 1\nname: x\nprecision: ", precision,
                           "\ndata: {name: glyphs}\nmodel: {name: lenet5}\nstages: [{name: a, train: 1e}]\n"));
    const Outcome outcome = run_program({"train", file_, "--runs", folder_ / "runs"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.output,
              str(file_, ":3:12: precision: ", precision, " is not supported on cpu yet; supported: f32, bf16\n"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

}  // namespace
}  // namespace tessera::testing

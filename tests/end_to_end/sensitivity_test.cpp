// sensitivity: each layer alone is pruned, the others stay as they are.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/tiny_experiment.h"

namespace tessera::testing {
namespace {

constexpr const char* kRest = R"(
deterministic: true
data: {name: glyphs, count: 480, test_count: 60, batch: 32, val: 0.25}
optimizer: {name: sgd, lr: 0.2, momentum: 0.9}
stages: [{name: dense, train: 15e}]
)";

class SensitivityRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder_ / "tiny.yaml", tiny_experiment(kRest, {.batch_norm = true}));
    const Outcome outcome = run_program({"train", folder_ / "tiny.yaml", "--runs", folder_ / "runs"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  }
  std::string run() const { return folder_ / "runs/tiny/1"; }
  Value json(const std::vector<std::string>& words) const {
    const Outcome outcome = run_program(joined(words, {"--json"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return parse_json(outcome.output.substr(outcome.output.find("{\n")), "output");
  }

  TemporaryFolder folder_;
};

TEST_F(SensitivityRuns, TellWhatEachLayerAloneCosts) {
  const Value report = json({"sensitivity", run(), "--sparsity", "0.001,0.5,0.98"});
  const Value evaluated = json({"eval", run(), "--split", "val"});
  EXPECT_EQ(report.at("accuracy").as_double(), evaluated.at("top1").as_double());
  const Value::List& layers = report.at("layers").as_list();
  ASSERT_EQ(layers.size(), 3u);
  const char* const paths[]{"conv1.weight", "conv2.weight", "fc.weight"};
  double worst = 1;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].at("path").as_string(), paths[i]);
    const Value::List& accuracy = layers[i].at("accuracy").as_list();
    ASSERT_EQ(accuracy.size(), 3u);
    // 0.1 % of 72 to 576 weights is none or one, so that the layers before it stand as they were.
    EXPECT_NEAR(accuracy[0].as_double(), report.at("accuracy").as_double(), 0.02) << paths[i];
    worst = std::min(worst, accuracy[2].as_double());
  }
  EXPECT_LT(worst, report.at("accuracy").as_double() - 0.1) << "a layer without its weights";
  const Value again = json({"sensitivity", run(), "--sparsity", "0.5"});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(to_json(again.at("layers").as_list()[i].at("accuracy").as_list()[0]),
              to_json(layers[i].at("accuracy").as_list()[1]));
  }
}

TEST_F(SensitivityRuns, SuggestTheGreatestSparsityWithinTheDrop) {
  const Value all = json({"sensitivity", run(), "--drop", "100"});
  for (const Value& layer : all.at("layers").as_list()) EXPECT_EQ(layer.at("suggested").as_double(), 0.9);
  const Outcome text = run_program({"sensitivity", run(), "--drop", "100", "--pattern", "tile"});
  expect_outcome(text, 0, "suggested");
  expect_in(text.output, "prune:\n  layers: [conv1, conv2, fc]\n  pattern: tile\n  sparsity:\n    target: 0.9\n");
  expect_in(text.output, "tile, one weight pruned at a time");
}

TEST_F(SensitivityRuns, RefuseWhatCannotBe) {
  expect_outcome(run_program({"sensitivity", run(), "--sparsity", "0.9,0.5"}), 2, "sparsities need to rise");
  expect_outcome(run_program({"sensitivity", run(), "--sparsity", "1"}), 2, "sparsities need to rise");
  expect_outcome(run_program({"sensitivity", run(), "--sparsity", "0.1,nan,0.5"}), 2, "sparsities need to rise");
  expect_outcome(run_program({"sensitivity", run(), "--drop", "-1"}), 2, "needs 0 or more");
  expect_outcome(run_program({"sensitivity", run(), "--pattern", "n_m"}), 2, "has a sparsity of its own");
  expect_outcome(run_program({"sensitivity", run(), "--pattern", "tiles"}), 2, "tiles");
  expect_outcome(run_program({"sensitivity", run(), "model.name=resnet8"}), 2, "model.name");
  expect_outcome(run_program({"sensitivity", folder_ / "none"}), 2, "none");
}

}  // namespace
}  // namespace tessera::testing

// sensitivity: each layer is pruned alone, while the others stay unchanged.
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
    train("tiny.yaml", "runs");
  }
  void train(const std::string& file, const std::string& runs, const std::vector<std::string>& changes = {}) const {
    const Outcome outcome = run_program(joined({"train", folder_ / file, "--runs", folder_ / runs}, changes));
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
    // 0.1 % of 72 to 576 weights is none or one: the accuracy barely changes, which shows that earlier layers were restored.
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

// A layer with several weights is named once, with the least of their targets. The block fits the network.
TEST_F(SensitivityRuns, SuggestABlockThatFactoredLayersTake) {
  const std::string stages = R"(
stages:
  - {name: dense, train: 2e}
  - {name: small, factorise: {layers: conv2, format: tucker2, ranks: {out: 6, in: 5}, keep: always}}
)";
  const std::string rest = std::string(kRest).substr(0, std::string(kRest).find("stages:")) + stages;
  write_bytes(folder_ / "small.yaml", tiny_experiment(rest));
  train("small.yaml", "small");
  const Outcome text = run_program({"sensitivity", folder_ / "small/tiny/1", "--sparsity", "0.25,0.5", "--drop", "100"});
  ASSERT_EQ(text.exit_code, 0) << text.output;
  const std::size_t begin = text.output.find("\nprune:\n");
  ASSERT_NE(begin, std::string::npos) << text.output;
  std::string block = text.output.substr(begin);
  EXPECT_EQ(block, "\nprune:\n  layers: [conv1, conv2, fc]\n  sparsity:\n    target: 0.5\n");
  for (std::size_t line = block.find('\n'); line + 1 < block.size(); line = block.find('\n', line + 1)) {
    block.insert(line + 1, "    ");
  }
  write_bytes(folder_ / "pruned.yaml", tiny_experiment(rest + "  - name: pruned\n    train: 9e" + block));
  expect_outcome(run_program({"validate", folder_ / "pruned.yaml"}), 0, "");
}

// As in a stage that prunes channels: a removed output leaves no bias.
TEST_F(SensitivityRuns, PruneWhatFollowsAChannelToo) {
  write_bytes(folder_ / "plain.yaml", tiny_experiment(kRest));
  train("plain.yaml", "plain");
  const std::string plain = folder_ / "plain/tiny/1";
  const Value report = json({"sensitivity", plain, "--pattern", "channel", "--sparsity", "0.5,0.75"});
  const Value::List& layers = report.at("layers").as_list();
  ASSERT_EQ(layers.size(), 3u);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string& path = layers[i].at("path").as_string();
    const std::string layer = path.substr(0, path.find('.'));
    const std::string stages = "stages=[{name: still, train: 1s, optimizer: {name: sgd, lr: 0}, prune: {layers: " + layer +
                               ", pattern: channel, sparsity: {target: 0.75, schedule: one_shot}}}]";
    train("plain.yaml", layer, {"model.weights=" + plain, stages});
    const Value evaluated = json({"eval", folder_ / (layer + "/tiny/1"), "--split", "val"});
    EXPECT_EQ(layers[i].at("accuracy").as_list()[1].as_double(), evaluated.at("top1").as_double()) << layer;
  }
}

// Layers that need no suggestion, and layers that cannot be pruned further.
TEST_F(SensitivityRuns, NameWhatIsSparseAlready) {
  const std::string stages =
      "stages=[{name: pruned, train: 1e, prune: {layers: conv2, sparsity: {target: 0.6, schedule: one_shot}}}, "
      "{name: sparse, train: 1s, sparsify: {keep: always}}]";
  train("tiny.yaml", "sparse", {"model.weights=" + run(), stages});
  const std::string sparse = folder_ / "sparse/tiny/1";
  const Outcome behind = run_program({"sensitivity", sparse, "--drop", "100"});
  expect_outcome(behind, 0, "left out: conv2 is sparse already (prune before sparsify)");
  expect_in(behind.output, "layers: [conv1, fc]\n");
  const Outcome masked = run_program({"sensitivity", sparse, "--at", "pruned", "--sparsity", "0.5", "--drop", "100"});
  expect_outcome(masked, 0, "layers: [conv1, fc]\n");
}

TEST_F(SensitivityRuns, RefuseWhatCannotBe) {
  expect_outcome(run_program({"sensitivity", run(), "--sparsity", "0.9,0.5"}), 2,
                 "sensitivity: --sparsity needs numbers that rise, above 0 and below 1");
  expect_outcome(run_program({"sensitivity", run(), "--sparsity", "1"}), 2,
                 "sensitivity: --sparsity needs numbers that rise, above 0 and below 1");
  expect_outcome(run_program({"sensitivity", run(), "--sparsity", "0.1,nan,0.5"}), 2,
                 "sensitivity: --sparsity needs numbers that rise, above 0 and below 1");
  expect_outcome(run_program({"sensitivity", run(), "--drop", "-1"}), 2, "needs 0 or more");
  expect_outcome(run_program({"sensitivity", run(), "--pattern", "n_m"}), 2,
                 "sensitivity: --pattern n_m has one sparsity of its own");
  expect_outcome(run_program({"sensitivity", run(), "--pattern", "tiles"}), 2, "tiles");
  expect_outcome(run_program({"sensitivity", run(), "model.name=resnet8"}), 2, "model.name");
  expect_outcome(run_program({"sensitivity", folder_ / "none"}), 2, "none");
}

}  // namespace
}  // namespace tessera::testing

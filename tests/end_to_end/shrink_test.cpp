// Networks that lose pruned channels, in whole runs.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "tests/end_to_end/tiny_runs.h"

namespace tessera::testing {
namespace {

// 13 steps an epoch. Half of the 8 channels of conv1, which a norm follows, and half of those of conv2 are removed.
constexpr const char* kRest = R"(
deterministic: true
data: {name: glyphs, count: 480, test_count: 60, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1.0e-3}
ema: {decay: 0.9}
checkpoint: {every: 3s, keep: 2, async: false}
log_every: 2
report: {latency: {batch: [2], repeats: 5}}
stages:
  - name: pruned
    train: 1e
    prune: {layers: "conv*", pattern: channel, sparsity: {target: 0.5, begin: 2s, end: 10s, every: 4s}}
  - {name: small, train: 1e, shrink: {keep: always}}
)";

class ShrinkRuns : public TinyRuns {
 protected:
  ShrinkRuns() : TinyRuns(kRest, {.batch_norm = true}) {}
};

TEST_F(ShrinkRuns, TrainOnWithFewerChannels) {
  expect_in(run_program({"plan", folder_ / "tiny.yaml"}).output, "[1, 13, 13, 4]");
  const Outcome outcome = run_program(train("runs"));
  expect_done(outcome);
  expect_in(outcome.output, "3 of 3 matched layers shrunk");
  const std::string run = run_in("runs");
  expect_in(read_bytes(run + "/layers.csv"), "small,conv2,conv2d,conv2d,narrow,mask,in 4 out 4,");
  const auto saved = tensors(run);
  EXPECT_EQ(saved.at("conv1.weight").shape(), (Shape{4, 3, 3, 1}));
  EXPECT_EQ(saved.at("1.running_mean").shape(), (Shape{4}));
  EXPECT_EQ(saved.at("conv2.weight").shape(), (Shape{4, 3, 3, 4}));
  EXPECT_EQ(saved.at("fc.weight").shape(), (Shape{10, 4}));
  EXPECT_FALSE(saved.contains("conv1.weight.mask"));
  for (const char* verb : {"eval", "table", "bench", "status"}) expect_done(run_program({verb, run}));
}

TEST_F(ShrinkRuns, KilledAndResumedTheyEndWithTheSameBytes) {
  expect_survives({"step:7", "shrink:1", "step:16", "save:17", "step:25"});
}

TEST_F(ShrinkRuns, WhatIsNotFasterComesBackWithItsMasks) {
  train_where_nothing_is_faster({"~deterministic", "stages[1].shrink.keep=faster"});
  expect_in(read_bytes(run_in("forged") + "/layers.csv"), ",dense,\"the network is not faster with it at");
  const auto saved = tensors(run_in("forged"));
  EXPECT_EQ(saved.at("conv2.weight").shape(), (Shape{8, 3, 3, 8}));
  EXPECT_TRUE(saved.contains("1.bias.mask")) << "pruned channels are zero behind their norm";
}

TEST_F(ShrinkRuns, WhatCannotBeIsNamedBeforeTraining) {
  const auto refused = [&](const std::vector<std::string>& change, const std::string& part) {
    expect_outcome(run_program(train("none", change)), 2, part);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
  };
  refused({"~stages[0].prune"}, "stages[1].shrink: no layer has an output that is masked");
  refused({"stages[1].shrink.keep=faster"}, "stages[1].shrink.keep: faster is decided by a clock");
}

TEST_F(ShrinkRuns, AreTriedBeforeTheFirstPruning) {
  const Outcome outcome = run_program({"validate", folder_ / "tiny.yaml", "--smoke", "stages[0].prune.sparsity.begin=4s"});
  expect_done(outcome);
  expect_in(outcome.output, "smoke small: 3 of 3 matched layers shrunk");
}

TEST_F(ShrinkRuns, AreExportedAndLoadedAsAnyDenseNetwork) {
  expect_done(run_program(train("runs")));
  expect_done(run_program({"export", run_in("runs"), "--output", folder_ / "out"}));
  const auto exported = decode_safetensors(read_bytes(folder_ / "out/model.safetensors"), "out").tensors;
  EXPECT_EQ(exported.at("conv2.weight").shape(), (Shape{4, 4, 3, 3}));
  EXPECT_FALSE(exported.contains("conv2.weight_mask"));
  const std::string next = str("model={name: saved, weights: ", run_in("runs"), "}");
  expect_done(run_program(train("again", {next, "stages=[{name: tuned, train: 2s}]"})));
  EXPECT_EQ(tensors(run_in("again")).at("conv2.weight").shape(), (Shape{4, 3, 3, 4}));
}

}  // namespace
}  // namespace tessera::testing

// Pruned networks in sparse kernels, in whole runs.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/value.h"
#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "tests/end_to_end/tiny_runs.h"

namespace tessera::testing {
namespace {

// 13 steps an epoch. conv2 has 576 weights, of which 115 stay.
constexpr const char* kRest = R"(
deterministic: true
data: {name: glyphs, count: 480, test_count: 60, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1.0e-3}
checkpoint: {every: 3s, keep: 2, async: false}
log_every: 2
report: {latency: {batch: [2], repeats: 5}}
stages:
  - {name: pruned, train: 1e, prune: {sparsity: {target: 0.8, begin: 2s, end: 10s, every: 4s}}}
  - {name: sparse, train: 1e, sparsify: {keep: always}}
)";

class SparsifyRuns : public TinyRuns {
 protected:
  SparsifyRuns() : TinyRuns(kRest) {}
};

TEST_F(SparsifyRuns, TrainOnInSparseLayers) {
  const Outcome planned = run_program({"plan", folder_ / "tiny.yaml"});
  expect_in(planned.output, "sparse_conv2d");
  const Outcome outcome = run_program(train("runs"));
  expect_done(outcome);
  const std::string run = run_in("runs");
  expect_in(read_bytes(run + "/layers.csv"), "sparse,conv2,conv2d,sparse_conv2d,sparse,mask,kept 115,");
  const auto saved = tensors(run);
  EXPECT_EQ(saved.at("conv2.values").shape(), (Shape{115}));
  EXPECT_EQ(saved.at("conv2.mask").shape(), (Shape{72}));
  for (const char* verb : {"eval", "table", "bench", "status"}) expect_done(run_program({verb, run}));
}

// A tenth of the values, plus one bit per weight.
TEST_F(SparsifyRuns, TakeAFractionOfTheirDenseBytes) {
  expect_done(run_program(train("runs", {"stages[0].prune.layers='*'", "stages[0].prune.sparsity.target=0.9"})));
  const auto saved = tensors(run_in("runs"));
  std::int64_t sparse = 0;
  for (const std::string layer : {"conv1", "conv2", "fc"}) {
    for (const char* part : {".values", ".mask"}) sparse += static_cast<std::int64_t>(saved.at(layer + part).bytes());
    EXPECT_FALSE(saved.contains(layer + ".weight"));
  }
  const std::int64_t dense = (72 + 576 + 80) * static_cast<std::int64_t>(sizeof(float));
  EXPECT_LE(static_cast<double>(sparse), 0.19 * static_cast<double>(dense));
}

TEST_F(SparsifyRuns, KilledAndResumedTheyEndWithTheSameBytes) {
  expect_survives({"step:7", "sparsify:1", "step:16", "save:17", "step:25"});
}

TEST_F(SparsifyRuns, WhatIsNotFasterStaysDenseAndKeepsItsMask) {
  train_where_nothing_is_faster({"~deterministic", "stages[1].sparsify.keep=faster"});
  expect_in(read_bytes(run_in("forged") + "/layers.csv"), ",dense,\"not faster at");
  EXPECT_EQ(kept(run_in("forged")), 115);
}

// If a clock found a layer slower and it is kept anyway, the report shows the cost.
TEST_F(SparsifyRuns, WhatIsKeptThoughNotFasterSaysItsCost) {
  train_where_nothing_is_faster({"~deterministic", "stages[1].sparsify.keep=always"});
  const std::string run = run_in("forged");
  expect_in(read_bytes(run + "/layers.csv"), "sparse,conv2,conv2d,sparse_conv2d,sparse,mask,kept 115,");
  expect_in(read_bytes(run + "/layers.csv"), ",inference,2,3,0.7,0.6,0.8,false,");
  expect_in(read_bytes(run + "/report.md"), "0.70x (0.60-0.80)");
  EXPECT_EQ(tensors(run).at("conv2.values").shape(), (Shape{115}));
}

// The masks move while dense kernels train, and are fixed in the sparse kernels.
TEST_F(SparsifyRuns, TrainOnWithTheMasksThatRiglLeft) {
  const std::string stages =
      "stages=[{name: moved, train: 2e, rigl: {sparsity: 0.8, scope: layer, every: 4s}}, "
      "{name: sparse, train: 1e, sparsify: {keep: always}}]";
  expect_survives({"step:9", "save:12", "step:22", "sparsify:1", "step:31"}, {stages});
  const std::string run = run_in("killed");
  const std::vector<Value> rows = rows_of(run, "rigl");
  ASSERT_EQ(rows.size(), 4u);
  for (const Value& row : rows) EXPECT_GT(row.at("moved").as_int(), 0);
  expect_in(read_bytes(run + "/layers.csv"), "sparse,conv2,conv2d,sparse_conv2d,sparse,mask,kept 115,");
  EXPECT_EQ(tensors(run).at("conv2.values").shape(), (Shape{115}));
}

TEST_F(SparsifyRuns, WhatCannotBeIsNamedBeforeTraining) {
  const auto refused = [&](const std::vector<std::string>& change, const std::string& part) {
    expect_outcome(run_program(train("none", change)), 2, part);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
  };
  refused({"stages[1].sparsify.layers=conv7"}, "stages[1].sparsify.layers: ");
  refused({"~stages[0].prune"}, "stages[1].sparsify.layers: no layer's weight has a mask");
  for (const char* const block : {"prune: {sparsity: {target: 0.9}}", "rigl: {sparsity: 0.9, every: 2s}"}) {
    const std::string text = block;
    refused({str("stages=[{name: pruned, train: 1e, prune: {sparsity: {target: 0.8, schedule: one_shot}}}, "
                 "{name: sparse, train: 1e, sparsify: {keep: always}}, {name: again, train: 1e, ",
                 text, "}]")},
            str("stages[2].", text.substr(0, text.find(':')),
                ".layers: each of these layers is sparse already; prune before sparsify"));
  }
  refused({"stages[1].sparsify.keep=faster"}, "stages[1].sparsify.keep: faster is decided by a clock");
}

TEST_F(SparsifyRuns, AreExportedDenseWithTheirMasks) {
  expect_done(run_program(train("runs")));
  const std::string run = run_in("runs");
  expect_done(run_program({"export", run, "--output", folder_ / "out"}));
  const auto exported = decode_safetensors(read_bytes(folder_ / "out/model.safetensors"), "out").tensors;
  EXPECT_EQ(exported.at("conv2.weight").shape(), (Shape{8, 8, 3, 3}));
  EXPECT_FALSE(exported.contains("conv2.values"));
  const Tensor mask = exported.at("conv2.weight_mask");
  ASSERT_EQ(mask.shape(), (Shape{8, 8, 3, 3}));
  const std::vector<std::uint8_t> keeps = mask.to_vector<std::uint8_t>();
  EXPECT_EQ(std::ranges::count(keeps, 1), 115);
  const std::vector<float> weight = exported.at("conv2.weight").to_vector<float>();
  for (std::size_t i = 0; i < keeps.size(); ++i) EXPECT_EQ(keeps[i] != 0, weight[i] != 0) << i;
}

TEST_F(SparsifyRuns, StartOtherRuns) {
  const std::string first = "stages=[{name: pruned, train: 1e, prune: {sparsity: {target: 0.8, end: 10s, every: 5s}}}]";
  const std::string dense = "stages=[{name: more, train: 1e}]";
  expect_done(run_program(train("masked", {first})));
  expect_done(run_program(train("from-masked", {"model.weights=" + run_in("masked"), dense})));
  EXPECT_EQ(kept(run_in("from-masked")), 115);

  expect_done(run_program(train("sparse")));
  expect_done(run_program(train("from-sparse", {"model={name: saved, weights: " + run_in("sparse") + "}", dense})));
  const auto before = tensors(run_in("sparse")), after = tensors(run_in("from-sparse"));
  EXPECT_EQ(after.at("conv2.mask").to_vector<std::uint8_t>(), before.at("conv2.mask").to_vector<std::uint8_t>());
  EXPECT_NE(after.at("conv2.values").to_vector<float>(), before.at("conv2.values").to_vector<float>());
}

// conv2's factors have 32, 180 and 40 weights, of which 6, 36 and 8 stay.
constexpr const char* kFactors =
    "stages=[{name: factored, factorise: {layers: conv2, ranks: {out: 5, in: 4}, keep: always}}, "
    "{name: pruned, train: 1e, prune: {sparsity: {target: 0.8, begin: 2s, end: 10s, every: 4s}}}, "
    "{name: sparse, train: 1e, sparsify: {keep: always}}]";

TEST_F(SparsifyRuns, TrainOnInSparseFactors) {
  expect_in(run_program(joined({"plan", folder_ / "tiny.yaml"}, {kFactors})).output, "conv2.1");
  const Outcome outcome = run_program(train("runs", {kFactors}));
  expect_done(outcome);
  const std::string run = run_in("runs");
  expect_in(read_bytes(run + "/layers.csv"), "sparse,conv2,tucker2_conv2d,sequential,sparse,mask,kept 50,");
  const auto saved = tensors(run);
  EXPECT_EQ(saved.at("conv2.0.values").shape(), (Shape{6}));
  EXPECT_EQ(saved.at("conv2.1.values").shape(), (Shape{36}));
  EXPECT_EQ(saved.at("conv2.1.mask").shape(), (Shape{23}));
  EXPECT_EQ(saved.at("conv2.2.values").shape(), (Shape{8}));
  for (const char* verb : {"eval", "table", "bench", "status"}) expect_done(run_program({verb, run}));
  expect_done(run_program({"export", run, "--output", folder_ / "out"}));
  const auto exported = decode_safetensors(read_bytes(folder_ / "out/model.safetensors"), "out").tensors;
  EXPECT_EQ(exported.at("conv2.1.weight").shape(), (Shape{5, 4, 3, 3}));
  EXPECT_EQ(exported.at("conv2.1.weight_mask").shape(), (Shape{5, 4, 3, 3}));
  EXPECT_TRUE(exported.contains("conv2.2.bias"));
}

TEST_F(SparsifyRuns, KilledAndResumedTheyEndWithTheSameBytesInFactors) {
  expect_survives({"step:8", "sparsify:2", "step:17", "save:18", "step:26"}, {kFactors});
}

TEST_F(SparsifyRuns, FactorsThatAreNotFasterStayDenseAndKeepTheirMasks) {
  train_where_nothing_is_faster({"~deterministic", kFactors, "stages[2].sparsify.keep=faster"});
  expect_in(read_bytes(run_in("forged") + "/layers.csv"), "sparse,conv2,tucker2_conv2d,tucker2_conv2d,");
  const std::vector<float> core = tensors(run_in("forged")).at("conv2.core").to_vector<float>();
  EXPECT_EQ(std::ranges::count_if(core, [](float value) { return value != 0; }), 36);
}

}  // namespace
}  // namespace tessera::testing

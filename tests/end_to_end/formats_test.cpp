// Each format in whole runs: layers of the form train from scratch. A trained network is factorised into the form, killed there
// and later, and resumed.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <map>

#include "core/config/value.h"
#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

struct Row {
  std::string name;
  std::string layer;      // a layer of the form, instead of one of 32 channels
  std::string factorise;  // format and ranks
  bool linear = false;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const Row kRows[]{{"tucker2", "{tucker2_conv2d: {out: 32, padding: 1, rank_in: 12, rank_out: 12, bias: false}}",
                   "format: tucker2, ranks: {out: 8, in: 8}, weighted: true, recalibrate: 3"},
                  {"svd_conv2d", "{svd_conv2d: {out: 32, rank: 12, bias: false}}", "format: svd, ranks: {rank: 6}"},
                  {"spatial_svd", "{spatial_svd_conv2d: {out: 32, padding: 1, rank: 16, bias: false}}",
                   "format: spatial_svd, ranks: {rank: 12}"},
                  {"cp", "{cp_conv2d: {out: 32, padding: 1, rank: 32, bias: false}}", "format: cp, ranks: {rank: 16}"},
                  {"tt_conv2d", "{tt_conv2d: {out: 32, padding: 1, ranks: [4, 12, 12, 4], bias: false}}",
                   "format: tt, ranks: {r1: 3, r2: 8, r3: 8, r4: 3}"},
                  {"tt_garipov", "{tt_garipov_conv2d: {out: 32, padding: 1, ranks: [9, 20], bias: false}}",
                   "format: tt_garipov, modes: {count: 3}, ranks: {r1: 6, r2: 9, r3: 5}"},
                  {"svd_linear", "{svd_linear: {out: 32, rank: 12}}", "format: svd, ranks: {rank: 4}", true},
                  {"tt_linear", "{tt_linear: {out: 32, ranks: [12]}}", "format: tt, ranks: {r1: 3}", true}};

constexpr const char* kHead = R"(
version: 1
name: forms
seed: 5
threads: {compute: 2, loader: 0}
deterministic: true
data: {name: glyphs, count: 1920, test_count: 60, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
ema: {decay: 0.9}
checkpoint: {every: 6s, keep: 2}
log_every: 3
model:
  name: layers
  layers:
    - {conv2d: {out: 32, kernel: 3, stride: 4, padding: 1, bias: false}}
    - batch_norm
    - relu
)";

class FormatRuns : public ::testing::TestWithParam<Row> {
 protected:
  // The network with `layer` as a convolution in the middle, or as a linear layer after the convolutions.
  static std::string experiment(const std::string& layer, const std::string& stages) {
    const std::string middle = GetParam().linear ? "    - flatten\n    - " + layer + "\n    - batch_norm\n"
                                                 : "    - " + layer + "\n    - batch_norm\n    - relu\n    - flatten\n";
    return kHead + middle + "    - relu\n    - {linear: {out: 10, name: fc}}\nstages:\n" + stages;
  }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/forms/1"); }
  std::vector<std::string> train(const std::string& runs) const {
    return {"train", folder_ / "forms.yaml", "--runs", folder_ / runs};
  }
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }
  static void expect_learnt(const std::string& run) {
    std::vector<double> losses;
    for (const std::string& line : split(read_bytes(run + "/metrics.jsonl"), '\n')) {
      if (line.empty()) continue;
      const Value row = parse_json(line, "metrics.jsonl");
      if (const Value* loss = row.find("loss")) losses.push_back(loss->as_double());
    }
    ASSERT_GE(losses.size(), 10u);
    EXPECT_LE(losses.back(), 0.5 * losses.front());
  }
  static std::map<std::string, Tensor> weights(const std::string& run) {
    const std::string file = newest_checkpoint(run) + "/model.safetensors";
    return decode_safetensors(read_bytes(file), file).tensors;
  }

  TemporaryFolder folder_;
};

TEST_P(FormatRuns, LayersLearnFromScratch) {
  write_bytes(folder_ / "forms.yaml", experiment(GetParam().layer, "  - {name: only, train: 2e}\n"));
  std::vector<std::string> still = train("still");
  still.insert(still.end(), {"optimizer.lr=0", "stages[0].train=1s"});
  expect_done(run_program(still));
  expect_done(run_program(train("moved")));

  expect_learnt(run_in("moved"));

  const std::map<std::string, Tensor> before = weights(run_in("still"));
  for (const auto& [name, after] : weights(run_in("moved"))) {
    if (name.find("running") != std::string::npos || name.ends_with("bias")) continue;
    double largest = 0;
    const Tensor& first = before.at(name);
    ASSERT_EQ(first.shape(), after.shape());
    for (std::int64_t i = 0; i < after.numel(); ++i) {
      largest = std::max(largest, static_cast<double>(std::abs(after.data<float>()[i] - first.data<float>()[i])));
    }
    EXPECT_GT(largest, 1e-3) << name;
  }
}

TEST_P(FormatRuns, KilledAndResumedTheyEndWithTheSameBytes) {
  const std::string dense = GetParam().linear ? "{linear: {out: 32, name: middle}}"
                            : GetParam().name == "svd_conv2d"
                                ? "{conv2d: {out: 32, kernel: 1, bias: false, name: middle}}"
                                : "{conv2d: {out: 32, kernel: 3, padding: 1, bias: false, name: middle}}";
  write_bytes(
      folder_ / "forms.yaml",
      experiment(dense, str("  - {name: dense, train: 10s}\n  - {name: factored, train: 8s, recompute: true, factorise: {keep: "
                            "always, layers: middle, ",
                            GetParam().factorise, "}}\n")));
  expect_done(run_program(train("straight")));
  std::vector<std::string> kept = train("kept");
  kept.emplace_back("stages[1].recompute=false");
  expect_done(run_program(kept));
  EXPECT_EQ(read_bytes(newest_checkpoint(run_in("kept")) + "/model.safetensors"),
            read_bytes(newest_checkpoint(run_in("straight")) + "/model.safetensors"));
  std::vector<std::string> next = train("killed");
  for (const char* place : {"factorise:1", "step:13"}) {
    const Outcome killed = run_program(next, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << place << ": " << killed.output;
    next = {"resume", run_in("killed")};
  }
  expect_done(run_program(next));
  EXPECT_TRUE(result_of(run_in("killed")) == result_of(run_in("straight")));
  const std::string layers = read_bytes(run_in("straight") + "/layers.csv");
  const std::string dense_kind = GetParam().linear ? "linear" : "conv2d";
  const std::string kind = split(split(GetParam().layer, '{').at(1), ':').at(0);
  expect_in(layers, str("factored,middle,", dense_kind, ',', kind, ','));
  if (GetParam().factorise.find("recalibrate") == std::string::npos) return;
  expect_in(read_bytes(run_in("straight") + "/report.md"), "Batch-norm statistics were measured anew on 3 training batches.");
}

const Row kNormedRows[]{
    {"tucker2", "{tucker2_conv2d: {out: 32, padding: 1, rank_in: 12, rank_out: 12, bias: false, batch_norm: true}}", ""},
    {"cp", "{cp_conv2d: {out: 32, padding: 1, rank: 32, bias: false, batch_norm: true}}", ""}};

class NormedFormatRuns : public FormatRuns {};

TEST_P(NormedFormatRuns, LearnAndResumeWithTheStatisticsBetweenTheirFilters) {
  write_bytes(folder_ / "forms.yaml", experiment(GetParam().layer, "  - {name: only, train: 1e}\n"));
  expect_done(run_program(train("straight")));
  expect_learnt(run_in("straight"));
  const std::map<std::string, Tensor> trained = weights(run_in("straight"));
  EXPECT_TRUE(trained.contains("3.norm0.running_mean"));
  EXPECT_TRUE(trained.contains("3.norm1.weight"));
  const Outcome killed = run_program(train("killed"), {"TESSERA_KILL_AT=step:20"});
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  expect_done(run_program({"resume", run_in("killed")}));
  EXPECT_TRUE(tensors_of(run_in("killed")) == tensors_of(run_in("straight")));
  EXPECT_EQ(read_bytes(run_in("killed") + "/metrics.jsonl"), read_bytes(run_in("straight") + "/metrics.jsonl"));
}

INSTANTIATE_TEST_SUITE_P(All, NormedFormatRuns, ::testing::ValuesIn(kNormedRows), [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(All, FormatRuns, ::testing::ValuesIn(kRows), [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace tessera::testing

// bench: what it times, what it refuses, and that it leaves a run unchanged.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/value.h"
#include "core/support/text.h"
#include "tests/end_to_end/trained_run.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBlocks = R"(
data: {name: glyphs, count: 96, test_count: 30, batch: 16, val: 0}
optimizer: {name: sgd, lr: 0.05}
stages:
  - {name: dense, train: 2s}
  - {name: tucker, factorise: {keep: always, layers: conv2, ranks: {out: 4, in: 4}}}
report: {latency: {batch: [3], repeats: 5}}
)";

class BenchVerb : public TrainedRun {
 protected:
  static void SetUpTestSuite() { train_shared(tiny_experiment(kBlocks)); }

  static Outcome bench(const std::string& target, const std::vector<std::string>& more) {
    return run_program(joined({"bench", target, "--rounds", "6"}, more));
  }
  static Value json(const std::string& target, std::vector<std::string> more) {
    more.emplace_back("--json");
    const Outcome outcome = bench(target, more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return parse_json(outcome.output.substr(outcome.output.find('{')), "output");  // after the output of standard error
  }
  // The bytes of every file of the run.
  static std::string content_of_run() {
    std::string content;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(run())) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) content += path.string() + (fs::is_directory(path) ? "/" : read_bytes(path)) + '\n';
    return content;
  }
};

TEST_F(BenchVerb, ARunsFactoredLayersStandBesideDenseOnesAndTheRunIsLeftAsItWas) {
  const std::string before = content_of_run();
  const Value value = json(run(), {"--batch", "2,1", "--threads", "1,2"});
  EXPECT_EQ(content_of_run(), before);
  EXPECT_EQ(value.at("state"), Value(std::string("stage tucker, step 3")));
  const Value::List& timings = value.at("timings").as_list();
  ASSERT_EQ(timings.size(), 4u);
  EXPECT_EQ(timings[2].at("threads"), Value(2));
  EXPECT_EQ(timings[2].at("batch"), Value(2));
  const Value::List& rows = timings[0].at("rows").as_list();
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].at("path"), Value(std::string("conv1")));
  EXPECT_TRUE(rows[0].at("compressed").is_null());
  EXPECT_EQ(rows[2].at("path"), Value(std::string("conv2")));
  EXPECT_EQ(rows[2].at("dense").at("kind"), Value(std::string("conv2d")));
  EXPECT_EQ(rows[2].at("compressed").at("kind"), Value(std::string("tucker2_conv2d")));
  EXPECT_LT(rows[2].at("compressed").at("macs").as_int(), rows[2].at("dense").at("macs").as_int());
  EXPECT_EQ(rows[2].at("dense").at("flops").as_int(), 2 * 2 * rows[2].at("dense").at("macs").as_int());
  EXPECT_EQ(rows[5].at("path"), Value(std::string()));
  EXPECT_FALSE(rows[5].at("speedup").is_null());
}

TEST_F(BenchVerb, ADenseStageHasOneSide) {
  const Value value = json(run(), {"--at", "dense", "--phase", "training"});
  const Value& timing = value.at("timings").as_list().at(0);
  EXPECT_EQ(timing.at("batch"), Value(3)) << "the report's";
  for (const Value& row : timing.at("rows").as_list()) EXPECT_TRUE(row.at("compressed").is_null());
  expect_outcome(bench(run(), {"--at", "dense"}), 0, "no layer is compressed\nnext: tessera table ");
}

TEST_F(BenchVerb, AFileIsTimedBeforeItTrainsAndAModelAsItIsNamed) {
  const Value of_file = json(file(), {"stages[1].factorise.ranks.in=2"});
  EXPECT_EQ(of_file.at("timings").as_list().at(0).at("rows").as_list().at(2).at("compressed").at("kind"),
            Value(std::string("tucker2_conv2d")));
  const Value of_model = json("lenet5", {"--batch", "1", "--input", "3x32x32", "classes=4"});
  EXPECT_EQ(of_model.at("input"), Value::list({Value(1), Value(32), Value(32), Value(3)}));
}

TEST_F(BenchVerb, CsvIsWrittenAndNamed) {
  const std::string csv = *folder_ / "times.csv";
  expect_outcome(bench(run(), {"--csv", csv}), 0, "wrote " + csv + "\nnext: tessera table ");
  EXPECT_EQ(parse_csv(read_bytes(csv), csv).size(), 7u);
}

TEST_F(BenchVerb, BadInputIsRefusedByName) {
  expect_outcome(bench("resnet81", {}), 2, "did you mean 'resnet18'?");
  expect_outcome(bench(*folder_ / "runs/tiny/9", {}), 2, "is no run folder, experiment file or model");
  expect_outcome(bench(*folder_ / "runs", {}), 2, "is not a run folder");
  expect_outcome(bench(run(), {"--batch", "1,x"}), 2, "--batch: 'x' is no whole number");
  expect_outcome(bench(run(), {"--threads", "0"}), 2, "--threads: '0' is no whole number");
  expect_outcome(bench(run(), {"--threads", "1025"}), 2, "--threads: '1025' is no whole number from 1 to 1024");
  expect_outcome(bench("lenet5", {"name=resnet18"}), 2, "bench: name=resnet18: the model is lenet5");
  expect_outcome(bench(run(), {"--input", "5x8x8"}), 2, "conv2d: input channels differ: x is [1, 8, 8, 5]");
  expect_outcome(bench(run(), {"--at", "nowhere"}), 2, "bench: no checkpoint 'nowhere'; there are:");
  expect_outcome(bench(run(), {"optimizer.lr=1"}), 2, "key=value may set report.latency.batch, threads.compute");
  expect_outcome(bench(run(), {"--phase", "both"}), 2, "--phase");
  expect_outcome(bench(run(), {"--rounds", "5"}), 2, "--rounds");
  expect_outcome(bench(run(), {"--csv", *folder_ / "none/x.csv"}), 2, "--csv: there is no folder");
  expect_outcome(bench(run(), {"--csv", run() + "/config.yaml/x.csv"}), 2, "--csv: there is no folder");
}

}  // namespace
}  // namespace tessera::testing

#include "train/report/eval_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/io/temporary_folder.h"
#include "train/checkpoint/store.h"
#include "train/config/yaml.h"
#include "train/run/session.h"
#include "train/tasks/class_counts.h"

namespace tessera {
namespace {

constexpr const char* kLinear = R"(
version: 1
name: x
threads: {compute: 1, loader: 0}
data: {name: glyphs, count: 60, test_count: 40, batch: 20, val: 0}
model: {name: layers, layers: [flatten, {linear: {out: 10, name: fc}}]}
stages: [{name: one, train: 1s}]
checkpoint: {async: false}
deterministic: true
)";

// A run whose network returns NaN for some classes, whatever the image.
class EvalReportNan : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Experiment experiment = parse_experiment(parse_yaml(kLinear, "x.yaml"));
    Session::start(real_vfs(), experiment, load_inputs(real_vfs(), experiment.config), kLinear, folder(), {}).run();
  }

  static EvalReport evaluate_with_nan(std::int64_t begin, std::int64_t end) {
    const RunLock lock(folder().path());
    CheckpointStore store(real_vfs(), folder().checkpoints());
    store.open_for_writing(lock);
    const Checkpoint checkpoint = store.load(1);
    std::map<std::string, State> parts = checkpoint.parts;
    Tensor bias = parts.at("model").tensors.at("fc.bias").clone();
    bias.fill(0.0);
    bias.slice(0, begin, end).fill(std::numeric_limits<double>::quiet_NaN());
    parts.at("model").tensors.at("fc.bias") = bias;
    store.save(1, parts, checkpoint.manifest);
    EvalOptions options;
    options.details.predictions = true;
    return evaluate_run(real_vfs(), folder(), options);
  }

  static const ClassCounts& counts_of(const EvalReport& report) {
    return dynamic_cast<const ClassDetails&>(*report.details).counts();
  }

  // The number of correct top-1 answers. The report's accuracy and its confusion matrix must agree.
  static std::int64_t right(const EvalReport& report) {
    std::int64_t diagonal = 0;
    const ClassCounts& counts = counts_of(report);
    for (std::size_t i = 0; i < counts.classes.size(); ++i) diagonal += counts.count(i, i);
    EXPECT_EQ(report.total.deciding(), static_cast<double>(diagonal) / 40);
    return diagonal;
  }

  static const RunFolder& folder() {
    static const TemporaryFolder runs;
    static const RunFolder made = RunFolder::create(real_vfs(), runs.path().string(), "x");
    return made;
  }
};

TEST_F(EvalReportNan, NumbersAloneAreCounted) {
  const EvalReport report = evaluate_with_nan(0, 0);
  EXPECT_GT(right(report), 0);
  EXPECT_GE(*counts_of(report).top5, right(report));
  EXPECT_NE(report.details->predictions().find(",1,"), std::string::npos);
  const Value json = parse_json(to_json(to_value(report)), "eval");  // first the report's keys, then the task's
  EXPECT_EQ(json.at("samples"), Value(40));
  EXPECT_EQ(json.at("top1").as_double(), report.total.deciding());
  EXPECT_EQ(json.at("confusion").as_list().size(), 10u);
}

TEST_F(EvalReportNan, NoSampleOfANetworkThatSaysNothingIsRight) {
  const EvalReport report = evaluate_with_nan(0, 10);
  EXPECT_EQ(report.total.samples, 40);
  EXPECT_EQ(right(report), 0);
  EXPECT_EQ(counts_of(report).top5, 0);
  EXPECT_TRUE(std::isnan(report.total.loss));
  EXPECT_EQ(report.details->predictions().find(",1,"), std::string::npos) << report.details->predictions();
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(counts_of(report).samples_of(i), 4) << "every sample is in the matrix";
}

TEST_F(EvalReportNan, AClassWithoutANumberIsNeverRightAndAheadOfTheOthers) {
  for (const std::size_t bad : {0, 3, 9}) {
    SCOPED_TRACE(bad);
    const auto index = static_cast<std::int64_t>(bad);
    const EvalReport report = evaluate_with_nan(index, index + 1);
    EXPECT_EQ(right(report), 0);
    EXPECT_EQ(counts_of(report).count(bad, bad), 0);
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(counts_of(report).count(i, bad), i == bad ? 0 : 4);
    EXPECT_LE(*counts_of(report).top5, 36);
  }
}

TEST_F(EvalReportNan, ANumberIsBehindEveryNan) {
  const EvalReport report = evaluate_with_nan(1, 10);
  EXPECT_EQ(right(report), 0);
  EXPECT_EQ(counts_of(report).top5, 0);
}

}  // namespace
}  // namespace tessera

#include "bench/result_lines.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera::bench {
namespace {

TEST(ResultLines, SayOnWhatTheyWereMeasuredButNotOnWhoseMachine) {
  const Value surroundings = describe_surroundings(2);
  for (const char* key : {"commit", "compiler", "onednn", "processor", "isa", "compute_threads", "date", "omp_wait_policy"}) {
    EXPECT_NE(surroundings.find(key), nullptr) << key;
  }
  EXPECT_EQ(surroundings.find("host"), nullptr);
  EXPECT_EQ(surroundings.at("date").as_string().size(), std::string("2026-01-01T00:00:00Z").size());
}

TEST(ResultLines, AreAppendedOneByOne) {
  const TemporaryFolder folder;
  CommonOptions options{.results = (folder.path() / "new" / "results.jsonl").string(), .command = "some_bench --rounds 3"};
  Value surroundings = Value::map();
  surroundings.set("commit", "abc");
  Value row = Value::map();
  row.set("ratio", to_value(Summary{2, 1, 3}));
  publish(options, surroundings, row);
  publish(options, surroundings, row);
  std::ifstream in(options.results);
  std::string line;
  int lines = 0;
  for (; std::getline(in, line); ++lines) {
    EXPECT_EQ(line, R"({"commit":"abc","command":"some_bench --rounds 3","ratio":{"median":2.0,"p10":1.0,"p90":3.0}})");
  }
  EXPECT_EQ(lines, 2);
}

Value ratio_of(double median, std::optional<double> of_medians = {}) {
  Value ratio = to_value(Summary{median, median, median});
  if (of_medians) ratio.set("of_medians", *of_medians);
  Value row = Value::map();
  row.set("ratio", ratio);
  return row;
}

TEST(Verdicts, AreOnTheGeometricMeanOrTheLeastOfAllRows) {
  Ratios ratios{"conv2d"};
  for (const double median : {4.0, 1.0, 2.0}) ratios.add(ratio_of(median));
  const Target targets[]{{"geometric_mean", 1.5}, {"least", 1.5}};
  Value row = verdict_row(ratios, targets[0]);
  EXPECT_NEAR(row.at("geometric_mean").as_double(), 2, 1e-12);
  row.erase("geometric_mean");
  EXPECT_EQ(to_json(row),
            R"({"op":"conv2d","rows":3,"failed":0,"least":1.0,"target_of":"geometric_mean","target":1.5,"reached":true})");
  EXPECT_FALSE(verdict_row(ratios, targets[1]).at("reached").as_bool());
  EXPECT_EQ(verdict_of(ratios, targets),
            "conv2d: 3 rows, geometric_mean 2.000, least 1.000; geometric_mean 1.5: reached; least 1.5: missed");
}

TEST(Verdicts, CountTheLowerOfTheMedianAndTheRatioOfTheMedians) {
  const Value above = ratio_of(2, 3), below = ratio_of(2, 1.5);
  EXPECT_EQ(counted(above.at("ratio")), 2);
  EXPECT_EQ(counted(below.at("ratio")), 1.5);
  EXPECT_EQ(counted(ratio_of(2).at("ratio")), 2);
  Ratios ratios{"conv2d"};
  ratios.add(above);
  ratios.add(below);
  EXPECT_FALSE(verdict_row(ratios, {"least", 1.75}).at("reached").as_bool());
  EXPECT_EQ(ratio_text(below.at("ratio")), "2.00x (2.00-2.00), of medians 1.50x");
  EXPECT_EQ(ratio_text(ratio_of(2).at("ratio")), "2.00x (2.00-2.00)");
}

TEST(Verdicts, ARowThatFailedReachesNothing) {
  Ratios ratios{"conv2d"};
  ratios.add(ratio_of(2));
  ratios.failed = 1;
  EXPECT_EQ(verdict_of(ratios, std::vector<Target>{{"least", 1}}),
            "conv2d: 1 rows and 1 failed, geometric_mean 2.000, least 2.000; least 1: missed");
  EXPECT_EQ(verdict_of({.op = "conv2d", .failed = 3}, std::vector<Target>{{"least", 1}}),
            "conv2d: 0 rows and 3 failed, geometric_mean 0.000, least 0.000; least 1: missed");
}

TEST(Verdicts, WithoutATargetThereIsASummary) {
  Ratios ratios{"tiles"};
  ratios.add(ratio_of(0.5));
  EXPECT_EQ(to_json(summary_row(ratios)), R"({"op":"tiles","rows":1,"failed":0,"geometric_mean":0.5,"least":0.5})");
  EXPECT_EQ(verdict_of(ratios, {}), "tiles: 1 rows, geometric_mean 0.500, least 0.500; no target");
}

TEST(ResultLines, AnUnwritableFileIsAnError) {
  EXPECT_THROW(publish({.results = "/dev/full"}, Value::map(), Value::map()), IoError);
}

}  // namespace
}  // namespace tessera::bench

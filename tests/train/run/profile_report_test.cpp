#include "train/run/profile_report.h"

#include <gtest/gtest.h>

#include "core/support/error.h"

namespace tessera {
namespace {

constexpr std::int64_t kMs = 1'000'000;

ProfileRow row(ProfilePart part, const char* what, const char* layer, std::int64_t kernel_ms, std::int64_t engine_ms,
               ProfiledWork work = {}) {
  return {part, what, layer, 2, kernel_ms * kMs, engine_ms * kMs, work};
}

// A report of two steps of 10 ms.
ProfileReport sample() {
  ProfileReport report;
  report.stage = "dense";
  report.last_step = 5;
  report.batch = 32;
  report.processor = "A Processor";
  report.peaks = {.threads = 2, .gflops = 100, .gbytes = 10};
  report.units_per_sample = 5;
  report.throughput_unit = "tok/s";
  report.step_ns = {9 * kMs, 11 * kMs};
  report.between_ns = {3 * kMs};
  report.rows = {row(ProfilePart::data, "wait for the batch", "", 0, 2),
                 row(ProfilePart::forward, "conv2d", "conv1", 4, 1, {.flops = 200'000'000, .bytes = 8'000'000}),
                 row(ProfilePart::forward, "conv2d", "conv2", 1, 1, {.flops = 50'000'000, .bytes = 2'000'000}),
                 row(ProfilePart::backward, "conv2d", "conv1", 6, 1, {.flops = 400'000'000}),
                 row(ProfilePart::forward, "flatten", "conv2", 0, 1),
                 row(ProfilePart::update, "sgd", "", 1, 0),
                 row(ProfilePart::rest, "end", "", 0, 1),
                 row(ProfilePart::profiler, "book-keeping", "", 0, 1)};
  return report;
}

TEST(ProfileReport, TellsOpsLayersAndTheEngine) {
  EXPECT_EQ(to_text(sample()),
            "profile of stage dense, steps 4 to 5, 32 samples each: 10.00 ms a step, median 10.00 (p10-p90 9.20-10.80), 16000 "
            "tok/s\n"
            "peaks of A Processor, 2 threads: 100.0 GFLOP/s (f32 multiply-add), 10.0 GB/s (scaling an array)\n"
            "\n"
            "op                       part      calls     ms     share  GFLOP/s  of peak  GB/s  of peak\n"
            "conv2d                   backward      1   3.00   30.00 %     66.7     67 %     -        -\n"
            "conv2d                   forward       2   2.50   25.00 %     50.0     50 %   2.0     20 %\n"
            "wait for the batch       data          1   1.00   10.00 %        -        -     -        -\n"
            "sgd                      update        1   0.50    5.00 %        -        -     -        -\n"
            "engine, outside kernels                    2.50   25.00 %\n"
            "profiler                                   0.50    5.00 %\n"
            "step                                      10.00  100.00 %\n"
            "\n"
            "layer                    forward ms  backward ms     ms     share  GFLOP/s  of peak  GB/s  of peak\n"
            "conv1                          2.00         3.00   5.00   50.00 %     60.0     60 %   0.8      8 %\n"
            "conv2                          0.50         0.00   0.50    5.00 %     50.0     50 %   2.0     20 %\n"
            "outside the layers                                 1.50   15.00 %\n"
            "engine, outside kernels                            2.50   25.00 %\n"
            "profiler                                           0.50    5.00 %\n"
            "step                                              10.00  100.00 %\n"
            "\n"
            "engine overhead: 25.00 % of a step, 2.50 ms outside of kernels and of waiting\n"
            "between two steps, not in the tables: 3.00 ms (logging, validation, saving)");
}

TEST(ProfileReport, WaitingForOtherRanksIsNoEngine) {
  ProfileReport report = sample();
  report.rows.push_back(row(ProfilePart::exchange, "gradients", "", 0, 3));
  EXPECT_EQ(report.engine_ns(), sample().engine_ns());
  EXPECT_NE(to_text(report).find("gradients                exchange      1   1.50   15.00 %"), std::string::npos)
      << to_text(report);
}

TEST(ProfileReport, AddsUpWhatIsBelowTheTopTen) {
  ProfileReport report = sample();
  report.rows.clear();
  for (int i = 0; i < 13; ++i) report.rows.push_back(row(ProfilePart::forward, "relu", str("layer", i).c_str(), 13 - i, 0));
  report.step_ns = {91 * kMs};
  const std::string text = to_text(report);
  EXPECT_NE(text.find("\nlayer9  "), std::string::npos) << text;
  EXPECT_EQ(text.find("\nlayer10"), std::string::npos) << text;
  EXPECT_NE(text.find("\n3 others                                           6.00    6.59 %\n"), std::string::npos) << text;
}

TEST(ProfileReport, MarkdownHasTheSameTables) {
  const std::string text = to_markdown(sample());
  EXPECT_NE(text.find("## By op\n\n| op | part | calls | ms | share | GFLOP/s | of peak | GB/s | of peak |\n"
                      "|---|---|---:|---:|---:|---:|---:|---:|---:|\n"
                      "| conv2d | backward | 1 | 3.00 | 30.00 % | 66.7 | 67 % | - | - |\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| step |  |  | 10.00 | 100.00 % |  |  |  |  |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("## By layer\n\n| layer | forward ms |"), std::string::npos) << text;
}

TEST(ProfileReport, JsonHasEveryRow) {
  const Value value = to_value(sample());
  EXPECT_EQ(value.at("first_step").as_int(), 4);
  EXPECT_EQ(value.at("last_step").as_int(), 5);
  EXPECT_EQ(value.at("engine_ns").as_int(), 5 * kMs);
  EXPECT_EQ(value.at("peaks").at("threads").as_int(), 2);
  EXPECT_EQ(value.at("step_ns").as_list().size(), 2u);
  ASSERT_EQ(value.at("rows").as_list().size(), 8u);
  EXPECT_EQ(to_json(value.at("rows").as_list()[1]),
            R"({"part":"forward","what":"conv2d","layer":"conv1","calls":2,"kernel_ns":4000000,"engine_ns":1000000,)"
            R"("flops":200000000,"bytes":8000000})");
}

}  // namespace
}  // namespace tessera

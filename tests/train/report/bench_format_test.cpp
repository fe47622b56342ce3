#include <gtest/gtest.h>

#include "core/support/text.h"
#include "train/report/bench_report.h"

namespace tessera {
namespace {

TimedSide side(const std::string& kind, std::int64_t macs, double ms) {
  return {.kind = kind, .macs = macs, .flops = 4 * macs, .ms = {.median = ms, .p10 = 0.5 * ms, .p90 = 2 * ms}};
}

// Two images through a network of 3 million multiply-adds. Its convolution is compressed to a third.
BenchReport report_of(bool compressed) {
  BenchPart part{.batch = 2, .threads = 1, .rows = {}};
  part.rows.push_back(
      {.path = "conv", .dense = side("conv2d", 3'000'000, 8), .compressed = {}, .speedup = {}, .network_share = 0.8});
  part.rows.push_back(
      {.path = "relu", .dense = side("relu", 0, 0.125), .compressed = {}, .speedup = {}, .network_share = 0.0125});
  part.rows.push_back({.path = "", .dense = side("network", 3'000'000, 10), .compressed = {}, .speedup = {}, .network_share = 1});
  if (compressed) {
    part.rows[0].compressed = side("tucker2_conv2d", 1'000'000, 4);
    part.rows[0].speedup = {.median = 2, .low = 1.75, .high = 2.25};
    part.rows[2].compressed = side("network", 1'000'000, 5);
    part.rows[2].speedup = {.median = 2, .low = 1.5, .high = 2.5};
  }
  return {.target = "runs/x/1",
          .state = "stage dense, step 7",
          .setup = "A, B",
          .input = {1, 8, 8, 3},
          .phase = Phase::inference,
          .rounds = 60,
          .parts = {part}};
}

TEST(BenchFormat, ACompressedNetworkHasBothSidesInALine) {
  EXPECT_EQ(to_text(report_of(true)),
            "runs/x/1, stage dense, step 7; input [1, 8, 8, 3]; 60 rounds\n"
            "A, B\n\n"
            "batch 2, folded inference, 1 threads\n"
            "layer  kind     MMACs   dense ms (p10-p90)  GFLOP/s    share  compressed      MMACs  ms (p10-p90)  GFLOP/s"
            "    speed-up (95 %)\n"
            "conv   conv2d    3.00           8 (4-16.0)      1.5   80.0 %  tucker2_conv2d   1.00       4 (2-8)      1.0"
            "  2.00x (1.75-2.25)\n"
            "relu   relu            0.125 (0.0625-0.25)             1.2 %\n"
            "       network   3.00        10.0 (5-20.0)      1.2  100.0 %  network          1.00  5 (2.5-10.0)      0.8"
            "  2.00x (1.50-2.50)\n");
}

TEST(BenchFormat, ADenseNetworkHasOneSideAndSaysSo) {
  const std::string text = to_text(report_of(false));
  EXPECT_NE(text.find("GFLOP/s    share\nconv"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n\nno layer is compressed\n")) << text;
}

TEST(BenchFormat, CsvHasACellForEveryColumn) {
  for (const bool compressed : {true, false}) {
    const auto rows = parse_csv(to_csv(report_of(compressed)), "bench.csv");
    ASSERT_EQ(rows.size(), 4u);
    for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
    EXPECT_EQ(rows[1].at(3), "f32");
    EXPECT_EQ(rows[1].at(4), "conv");
    EXPECT_EQ(rows[1].at(11), "1.5");
    EXPECT_EQ(rows[2].at(11), "") << "a rectifier has no rate";
    EXPECT_EQ(rows[3].at(4), "");
    EXPECT_EQ(rows[3].back(), "A, B");
    EXPECT_EQ(rows[1].at(13), compressed ? "tucker2_conv2d" : "");
    EXPECT_EQ(rows[1].at(20), compressed ? "2" : "");
  }
}

TEST(BenchFormat, JsonSaysWhatIsMissing) {
  const Value value = to_value(report_of(true));
  const Value& rows = value.at("timings").as_list().at(0).at("rows");
  EXPECT_EQ(rows.as_list().at(0).at("speedup").at("low"), Value(1.75));
  EXPECT_EQ(rows.as_list().at(0).at("compressed").at("macs"), Value(std::int64_t{1'000'000}));
  EXPECT_TRUE(rows.as_list().at(1).at("compressed").is_null());
  EXPECT_TRUE(rows.as_list().at(1).at("speedup").is_null());
  EXPECT_TRUE(rows.as_list().at(1).at("dense").at("gflops_per_second").is_null());
}

BenchReport report_of_gpu() {
  BenchReport report = report_of(true);
  report.gpu = "NVIDIA H200";
  report.tf32 = true;
  report.parts[0].threads = 0;
  for (LayerTiming& row : report.parts[0].rows) row.replayed = true;
  return report;
}

TEST(BenchFormat, AGpuStandsInThePlaceOfThreads) {
  BenchReport report = report_of_gpu();
  EXPECT_NE(to_text(report).find("\nbatch 2, folded inference, NVIDIA H200, tf32, recorded and replayed\n"), std::string::npos)
      << to_text(report);
  EXPECT_NE(to_csv(report).find("\n2,0,inference,tf32,conv,"), std::string::npos) << to_csv(report);
  const Value value = to_value(report);
  EXPECT_EQ(value.at("precision").as_string(), "tf32");
  EXPECT_TRUE(value.at("timings").as_list()[0].at("rows").as_list()[0].at("replayed").as_bool());
}

TEST(BenchFormat, WhatCouldNotBeRecordedIsNamed) {
  BenchReport report = report_of_gpu();
  report.parts[0].rows[0].replayed = report.parts[0].rows[2].replayed = false;
  EXPECT_NE(to_text(report).find("NVIDIA H200, tf32, recorded and replayed; as queued by the host: conv, the network\n"),
            std::string::npos)
      << to_text(report);
}

TEST(BenchFormat, TheCpusReportHasNoWordOfRecording) {
  EXPECT_EQ(to_text(report_of(true)).find("replayed"), std::string::npos);
  EXPECT_EQ(to_json(to_value(report_of(true))).find("replayed"), std::string::npos);
}

}  // namespace
}  // namespace tessera

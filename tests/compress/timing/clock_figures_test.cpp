#include "compress/timing/clock_figures.h"

#include <gtest/gtest.h>

#include "compress/report.h"
#include "core/support/text.h"

namespace tessera::testing {
namespace {

LayerReport timed(const Speed& speed, double share) {
  LayerReport row;
  row.path = "conv2";
  row.ranks_asked = "out 4 in 2";
  row.ranks = {.out = 4, .in = 2};
  row.decision = Decision::factored;
  row.speed = speed;
  row.network_share = share;
  row.reason = "not faster: " + describe(speed.ratio) + " at batch 128, inference, 2 threads";
  return row;
}

const Speed kOne{.dense_ms = 2.31, .compressed_ms = 2.783, .ratio = {.median = 0.83, .low = 0.8, .high = 0.85}};
const Speed kTwo{.dense_ms = 1e-05, .compressed_ms = 12, .ratio = {.median = 12.5, .low = 11, .high = 13.75}};

std::vector<std::vector<std::string>> rows_of(const LayerReport& layer) {
  return parse_csv(layers_csv_header() + layers_csv_rows("tucker", {&layer, 1}), "layers.csv");
}

TEST(ClockFigures, TwoTimingsDifferInTheClocksColumnsAndInTheReasonsSpeed) {
  const auto a = rows_of(timed(kOne, 0.25));
  const auto b = rows_of(timed(kTwo, 0.5));
  for (std::size_t i = 0; i < a[0].size(); ++i) {
    EXPECT_EQ(a[1][i] != b[1][i], is_clock_column(a[0][i]) || a[0][i] == "reason") << a[0][i];
  }
  EXPECT_EQ(without_speeds(a[1].back()), "not faster: SPEED at batch 128, inference, 2 threads");
  EXPECT_EQ(without_speeds(b[1].back()), without_speeds(a[1].back()));
}

PassReport report_of(const Speed& speed, double share) {
  PassReport report;
  report.layers = {timed(speed, share)};
  report.speed = speed;
  report.timed_at = "batch 128, inference, 2 threads";
  return report;
}

TEST(ClockFigures, AReportKeepsWhatIsNoSpeed) {
  const PassReport one = report_of(kOne, 0.25);
  PassReport two = report_of(kTwo, 0.5);
  EXPECT_NE(pass_markdown(one), pass_markdown(two));
  EXPECT_EQ(without_speeds(pass_markdown(one)), without_speeds(pass_markdown(two)));
  two.layers[0].relative_error = 0.5;
  EXPECT_NE(without_speeds(pass_markdown(one)), without_speeds(pass_markdown(two)));
  EXPECT_EQ(without_speeds("keeps no MACs: 0.97x of 3x3 (dense)"), "keeps no MACs: 0.97x of 3x3 (dense)");
}

TEST(ClockFigures, OfATimingTheWordCounts) {
  EXPECT_EQ(without_times("keep.layer conv2d for x", to_text(kOne)), "not-faster");
  EXPECT_EQ(without_times("keep.network 0123", "faster dense_ms 2 compressed_ms 1 ratio 2 low 1.5 high 2.5"), "faster");
  EXPECT_EQ(without_times("conv2d.forward n8", "winograd"), "winograd");
}

}  // namespace
}  // namespace tessera::testing

#include "compress/report.h"

#include <gtest/gtest.h>

namespace tessera::testing {
namespace {

TEST(LayersCsv, WritesOneQuotedLineForEachLayer) {
  const LayerReport factored{.path = "layer1.0.conv1", .kind_before = "conv2d", .kind_after = "tucker2_conv2d",
                             .format = "tucker2", .ranks_asked = "out 8 in 4", .ranks = Tucker2Ranks{8, 4}, .relative_error = 0.25,
                             .parameters_before = 1000, .parameters_after = 300, .macs_before = 64000, .macs_after = 20000,
                             .decision = Decision::factored, .reason = "", .seconds = 0.5};
  const LayerReport dense{.path = "conv1", .kind_before = "conv2d", .kind_after = "conv2d", .format = "tucker2",
                          .ranks_asked = "macs 0.4 per matched", .ranks = {}, .parameters_before = 9, .parameters_after = 9,
                          .macs_before = 81, .macs_after = 81, .reason = "too \"small\", stays"};
  const LayerReport layers[]{factored, dense};
  EXPECT_EQ(layers_csv(layers),
            "path,kind_before,kind_after,format,ranks_asked,rank_out,rank_in,relative_error,parameters_before,parameters_after,"
            "macs_before,macs_after,decision,reason\n"
            "layer1.0.conv1,conv2d,tucker2_conv2d,tucker2,out 8 in 4,8,4,0.25,1000,300,64000,20000,factored,\n"
            "conv1,conv2d,conv2d,tucker2,macs 0.4 per matched,,,0,9,9,81,81,dense,\"too \"\"small\"\", stays\"\n");
}

TEST(LayersCsv, IsAHeaderWithoutLayers) {
  const std::string csv = layers_csv({});
  EXPECT_EQ(csv.find('\n'), csv.size() - 1);
}

TEST(Summary, CountsTheFactoredAndNamesTheDense) {
  PassReport report;
  report.before = {.parameters = 2000, .macs = 90000, .weight_bytes = 8000};
  report.after = {.parameters = 1300, .macs = 46000, .weight_bytes = 5200};
  LayerReport& factored = report.layers.emplace_back();
  factored.path = std::string("a");  // not a literal: GCC 12 warns of an overlap that is not there
  factored.macs_before = 64000;
  factored.macs_after = 20000;
  factored.decision = Decision::factored;
  LayerReport& dense = report.layers.emplace_back();
  dense.path = std::string("b");
  dense.reason = std::string("has 4 groups");
  EXPECT_EQ(summary(report),
            "1 of 2 matched layers factored, 31.3 % of their MACs kept; network: parameters 2000 -> 1300, MACs 90000 -> 46000\n"
            "  b stays dense: has 4 groups");
}

}  // namespace
}  // namespace tessera::testing

#include "compress/report.h"

#include <gtest/gtest.h>

#include <set>

#include "core/config/read.h"

namespace tessera::testing {
namespace {

const Speed kSpeed{.dense_ms = 2.31, .compressed_ms = 1.51, .ratio = {.median = 1.53, .low = 1.49, .high = 1.58}, .faster = true};

TEST(LayersCsv, WritesOneQuotedLineForEachLayer) {
  const LayerReport factored{.path = "layer1.0.conv1",
                             .kind_before = "conv2d",
                             .kind_after = "tucker2_conv2d",
                             .format = "tucker2",
                             .ranks_asked = "out 8 in 4",
                             .ranks = Ranks{{"out", 8}, {"in", 4}},
                             .relative_error = 0.25,
                             .parameters_before = 1000,
                             .parameters_after = 300,
                             .macs_before = 64000,
                             .macs_after = 20000,
                             .phase = "decode",
                             .speed = kSpeed,
                             .network_share = 0.125,
                             .decision = "factored",
                             .reason = "",
                             .seconds = 0.5};
  const LayerReport dense{.path = "conv1",
                          .kind_before = "conv2d",
                          .kind_after = "conv2d",
                          .format = "tucker2",
                          .ranks_asked = "macs 0.4 per matched",
                          .ranks = {},
                          .parameters_before = 9,
                          .parameters_after = 9,
                          .macs_before = 81,
                          .macs_after = 81,
                          .reason = "too \"small\", stays"};
  const LayerReport layers[]{factored, dense};
  EXPECT_EQ(layers_csv_header() + layers_csv_rows("tucker, once", layers),
            "stage,path,kind_before,kind_after,format,ranks_asked,ranks,relative_error,parameters_before,parameters_after,"
            "macs_before,macs_after,phase,dense_ms,compressed_ms,speedup,speedup_low,speedup_high,faster,network_share,decision,"
            "reason\n"
            "\"tucker, once\",layer1.0.conv1,conv2d,tucker2_conv2d,tucker2,out 8 in 4,out 8 in 4,0.25,1000,300,"
            "64000,20000,decode,2.31,1.51,1.53,1.49,1.58,true,0.125,factored,\n"
            "\"tucker, once\",conv1,conv2d,conv2d,tucker2,macs 0.4 per matched,,0,9,9,"
            "81,81,,,,,,,,,dense,\"too \"\"small\"\", stays\"\n");
}

// Two runs that are otherwise equal differ in these columns.
TEST(LayersCsv, KnowsTheColumnsThatAClockFills) {
  std::string clocked;
  std::set<std::string> names;
  for (const LayerColumn& column : layer_columns()) {
    EXPECT_TRUE(names.insert(column.name).second) << column.name << " stands twice";
    EXPECT_EQ(is_clock_column(column.name), column.clock);
    if (column.clock) clocked += column.name + ' ';
  }
  EXPECT_EQ(clocked, "dense_ms compressed_ms speedup speedup_low speedup_high network_share ");
  EXPECT_FALSE(is_clock_column("reason"));
  EXPECT_EQ(verdict_of(to_text(kSpeed)), "faster");
  EXPECT_EQ(verdict_of(to_text(Speed{})), "not-faster");
}

TEST(LayersCsv, HasNoRowsWithoutLayers) { EXPECT_EQ(layers_csv_rows("stage", {}), ""); }

TEST(Summary, CountsTheFactoredAndNamesTheDense) {
  PassReport report;
  report.before = {.parameters = 2000, .macs = 90000, .weight_bytes = 8000};
  report.after = {.parameters = 1300, .macs = 46000, .weight_bytes = 5200};
  LayerReport& factored = report.layers.emplace_back();
  factored.path = std::string("a");  // not a literal: GCC 12 would warn of an overlap that does not exist
  factored.macs_before = 64000;
  factored.macs_after = 20000;
  factored.decision = "factored";
  LayerReport& dense = report.layers.emplace_back();
  dense.path = std::string("b");
  dense.reason = std::string("has 4 groups");
  LayerReport& kept = report.layers.emplace_back();
  kept.path = std::string("c");
  kept.decision = "factored";
  kept.reason = std::string("not faster at batch 32, inference, 2 threads");
  kept.speed = Speed{.dense_ms = 1, .compressed_ms = 1.02, .ratio = {.median = 0.98, .low = 0.97, .high = 0.99}};
  report.speed = kSpeed;
  report.timed_at = std::string("batch 32, inference, 2 threads");
  EXPECT_EQ(summary(report),
            "2 of 3 matched layers factored, 31.3 % of their MACs kept; network: parameters 2000 -> 1300, MACs 90000 -> 46000; "
            "1.53x (1.49-1.58) as fast at batch 32, inference, 2 threads\n"
            "  b stays dense: has 4 groups\n"
            "  c is kept: not faster at batch 32, inference, 2 threads; alone 0.98x (0.97-0.99)");
}

// A look-up of table rows takes no MACs, but products of its factors do.
TEST(Summary, TellsNoFractionOfMacsThatThereWereNot) {
  PassReport report;
  report.before = {.parameters = 2000, .macs = 90000, .weight_bytes = 8000};
  report.after = {.parameters = 1300, .macs = 90400, .weight_bytes = 5200};
  LayerReport& table = report.layers.emplace_back();
  table.macs_after = 400;
  table.decision = "factored";
  EXPECT_EQ(summary(report), "1 of 1 matched layers factored; network: parameters 2000 -> 1300, MACs 90000 -> 90400");
  EXPECT_NE(pass_markdown(report).find("| MACs, matched layers | 0 | 400 | - |"), std::string::npos);
}

PassReport two_layers() {
  PassReport report;
  report.pass = std::string("factorise");
  report.before = {.parameters = 2000, .macs = 90000, .weight_bytes = 8000};
  report.after = {.parameters = 1300, .macs = 46000, .weight_bytes = 5200};
  report.layers.push_back({.path = "a",
                           .kind_before = "conv2d",
                           .kind_after = "tucker2_conv2d",
                           .format = "tucker2",
                           .ranks_asked = "macs 0.4 per matched",
                           .ranks = Ranks{{"out", 8}, {"in", 4}},
                           .relative_error = 0.25,
                           .parameters_before = 1000,
                           .parameters_after = 300,
                           .macs_before = 64000,
                           .macs_after = 20000,
                           .phase = "inference",
                           .speed = kSpeed,
                           .network_share = 0.125,
                           .decision = "factored",
                           .reason = "",
                           .seconds = 0.5});
  report.layers.push_back({.path = "b",
                           .kind_before = "conv2d",
                           .kind_after = "conv2d",
                           .format = "tucker2",
                           .ranks_asked = "macs 0.4 per matched",
                           .ranks = {},
                           .parameters_before = 200,
                           .parameters_after = 200,
                           .macs_before = 16000,
                           .macs_after = 16000,
                           .reason = "has 4 | groups"});
  report.speed = kSpeed;
  report.timed_at = std::string("batch 32, inference, 2 threads");
  return report;
}

TEST(PassMarkdown, TellsAskedReachedAndEveryLayer) {
  EXPECT_EQ(pass_markdown(two_layers()),
            "Asked: macs 0.4 per matched. 1 of 2 matched layers factored.\n"
            "\n"
            "| | before | after | kept |\n"
            "|---|---:|---:|---:|\n"
            "| parameters, matched layers | 1200 | 500 | 0.4167 |\n"
            "| MACs, matched layers | 80000 | 36000 | 0.4500 |\n"
            "| parameters, network | 2000 | 1300 | 0.6500 |\n"
            "| MACs, network | 90000 | 46000 | 0.5111 |\n"
            "\n"
            "The network at batch 32, inference, 2 threads: 2.31 -> 1.51 ms, 1.53x (1.49-1.58).\n"
            "\n"
            "| layer | format | ranks | relative error | parameters | MACs | time |\n"
            "|---|---|---|---:|---:|---:|---|\n"
            "| a | tucker2 | out 8 in 4 | 0.2500 | 1000 -> 300 | 64000 -> 20000 | 2.31 -> 1.51 ms, 1.53x (1.49-1.58) |\n"
            "| b | tucker2 | dense: has 4 \\| groups | 0.0000 | 200 -> 200 | 16000 -> 16000 | - |\n");
}

TEST(PassMarkdown, ListsEveryRuleOnce) {
  PassReport report = two_layers();
  report.layers.push_back(report.layers[0]);
  report.layers[1].ranks_asked = std::string("energy 0.9");
  const std::string text = pass_markdown(report);
  EXPECT_TRUE(text.starts_with("Asked: macs 0.4 per matched; energy 0.9. 2 of 3 matched layers factored.\n")) << text;
}

TEST(PassText, HasARowPerLayerAndOneOfTheNetwork) {
  PassReport report = two_layers();
  EXPECT_EQ(pass_text(report),
            "factorise: asked macs 0.4 per matched; the network timed at batch 32, inference, 2 threads\n"
            "layer    format   ranks        error    parameters            MACs  dense ms    ms    speed-up (95 %)  decision\n"
            "a        tucker2  out 8 in 4  0.2500   1000 -> 300  64000 -> 20000      2.31  1.51  1.53x (1.49-1.58)  factored\n"
            "b        tucker2  -                -    200 -> 200  16000 -> 16000         -     -                  -  "
            "dense: has 4 | groups\n"
            "network                               2000 -> 1300  90000 -> 46000      2.31  1.51  1.53x (1.49-1.58)  "
            "1 of 2 matched layers factored\n");
  report.speed->faster = false;
  report.speed->ratio.low = 1.01;
  EXPECT_NE(pass_text(report).find("1 of 2 matched layers factored, not faster\n"), std::string::npos);
}

// A report of a network that writes text.
PassReport three_phases() {
  PassReport report = two_layers();
  const Speed slower{.dense_ms = 1, .compressed_ms = 1.02, .ratio = {.median = 0.98, .low = 0.97, .high = 0.99}};
  report.other_phases = {{"decode", "batch 1, decode at length 256, 2 threads", kSpeed},
                         {"training", "batch 16, training, 2 threads", slower}};
  return report;
}

TEST(PassReport, TellsTheNetworksSpeedInEachPhase) {
  const PassReport report = three_phases();
  const std::string page = pass_markdown(report);
  EXPECT_NE(page.find("\nThe network at batch 32, inference, 2 threads: 2.31 -> 1.51 ms, 1.53x (1.49-1.58).\n"
                      "\nThe network at batch 1, decode at length 256, 2 threads: 2.31 -> 1.51 ms, 1.53x (1.49-1.58).\n"
                      "\nThe network at batch 16, training, 2 threads: 1 -> 1.02 ms, 0.98x (0.97-0.99), not faster.\n"),
            std::string::npos)
      << page;
  EXPECT_NE(summary(report).find("; 1.53x (1.49-1.58) as fast at batch 32, inference, 2 threads; 1.53x (1.49-1.58) as fast at "
                                 "batch 1, decode at length 256, 2 threads; 0.98x (0.97-0.99) as fast, which is not faster, at "
                                 "batch 16, training, 2 threads"),
            std::string::npos)
      << summary(report);
  const std::string table = pass_text(report);
  EXPECT_NE(table.find("in decode "), std::string::npos) << table;
  EXPECT_NE(table.find("  2.31  1.51  1.53x (1.49-1.58)  at batch 1, decode at length 256, 2 threads\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("  1  1.02  0.98x (0.97-0.99)  not faster at batch 16, training, 2 threads\n"), std::string::npos)
      << table;
}

// The ratio comes from other rounds than the verdict.
TEST(PassReport, TellsWhereTheRoundsThatDecideFoundItNotFaster) {
  PassReport report = two_layers();
  report.speed = kSpeed;
  report.speed->faster = false;
  EXPECT_NE(summary(report).find("; 1.53x (1.49-1.58) as fast, which is not faster in the rounds that decide, at batch 32"),
            std::string::npos)
      << summary(report);
  EXPECT_NE(pass_markdown(report).find("1.53x (1.49-1.58), not faster in the rounds that decide.\n"), std::string::npos)
      << pass_markdown(report);
  EXPECT_NE(pass_text(report).find("1 of 2 matched layers factored, not faster in the rounds that decide\n"), std::string::npos)
      << pass_text(report);
  LayerReport& layer = report.layers.at(0);
  layer.speed = report.speed;
  layer.reason = "not faster at batch 32, inference, 2 threads";
  const std::string told = layer.reason + ", by the rounds that decide";
  EXPECT_NE(summary(report).find(" is kept: " + told + "; alone 1.53x (1.49-1.58)"), std::string::npos) << summary(report);
  EXPECT_NE(pass_markdown(report).find("; " + told + " |"), std::string::npos) << pass_markdown(report);
  EXPECT_NE(pass_text(report).find(": " + told + '\n'), std::string::npos) << pass_text(report);
}

TEST(PassReport, ComesBackFromItsFields) {
  const PassReport report = three_phases();
  const PassReport again = read<PassReport>(parse_json(to_json(write(report)), "test"));
  EXPECT_EQ(pass_markdown(again), pass_markdown(report));
  EXPECT_EQ(layers_csv_rows("s", again.layers), layers_csv_rows("s", report.layers));
  EXPECT_EQ(again.layers[0].seconds, 0) << "two runs would differ in it";
}

}  // namespace
}  // namespace tessera::testing

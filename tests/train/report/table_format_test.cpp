#include <gtest/gtest.h>

#include <cmath>

#include "train/report/table.h"

namespace tessera {
namespace {

Table two_stages() {
  TableRow dense;
  dense.experiment = "small";
  dense.stage = "dense";
  dense.values = {0.9, 0.92};
  dense.parameters = 1000;
  dense.macs = 2500000;
  dense.file_bytes = 4096;
  dense.latency = {{.batch = 8, .time = {2, 1.5, 3}, .speedup = {1, 1, 1}, .of_medians = 1, .alone = 1.9}};
  TableRow factored = dense;
  factored.stage = "factored";
  factored.values = {0.875};
  factored.latency = {{.batch = 8, .time = {1, 0.75, 1.5}, .speedup = {2, 1.75, 2.25}, .of_medians = 1.9, .alone = 1}};
  return {"a processor", 2, {dense, factored}};
}

TEST(TableFormat, StandardDeviationIsOfTheSample) {
  TableRow row = two_stages().rows[0];
  EXPECT_DOUBLE_EQ(row.mean(), 0.91);
  EXPECT_EQ(row.stddev(), std::nullopt) << "of two runs";
  row.values.push_back(0.91);
  EXPECT_NEAR(row.stddev().value(), 0.01, 1e-15);
  EXPECT_EQ(to_value(Table{"a processor", 2, {row}}).at("rows").as_list().at(0).at("top1_sd"), Value(row.stddev().value()));
  EXPECT_TRUE(to_value(two_stages()).at("rows").as_list().at(0).at("top1_sd").is_null());
  EXPECT_EQ(TableRow{}.mean(), 0.0);
}

TEST(TableFormat, MarkdownHasARowPerStage) {
  EXPECT_EQ(to_markdown(two_stages()),
            "| experiment | stage | n | top-1 % | parameters | MMACs | file KiB | batch 8: ms (p10-p90) | "
            "speed-up (p10-p90; of medians) |\n"
            "|---|---|---|---|---|---|---|---|---|\n"
            "| small | dense | 2 | 91.00 | 1000 | 2.50 | 4 | 2.00 (1.50-3.00) | 1.00 (1.00-1.00; 1.00) |\n"
            "| small | factored | 1 | 87.50 | 1000 | 2.50 | 4 | 1.00 (0.75-1.50) | 2.00 (1.75-2.25; 1.90) |\n"
            "\nTimed on a processor, 2 threads, networks interleaved, batch norm folded; speed-up over the first stage.\n");
}

TEST(TableFormat, DecodeHasColumnsOfItsOwn) {
  Table table = two_stages();
  for (TableRow& row : table.rows) {
    row.latency.push_back(
        {.batch = 8, .time = {0.5, 0.25, 0.75}, .speedup = {3, 2, 4}, .of_medians = 2.5, .alone = 0.25, .phase = Phase::decode});
  }
  const std::string text = to_markdown(table);
  EXPECT_NE(text.find("| batch 8: ms (p10-p90) | speed-up (p10-p90; of medians) | decode, batch 8: ms (p10-p90) | "
                      "speed-up (p10-p90; of medians) |\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| 1.00 (0.75-1.50) | 2.00 (1.75-2.25; 1.90) | 0.50 (0.25-0.75) | 3.00 (2.00-4.00; 2.50) |\n"),
            std::string::npos)
      << text;
  EXPECT_NE(to_csv(table).find(",decode,8,0.5,0.25,0.75,0.25,3,2,4,2.5,"), std::string::npos) << to_csv(table);
  EXPECT_EQ(to_value(table).at("rows").as_list().at(0).at("latency").as_list().at(1).at("phase"), Value("decode"));
}

TEST(TableFormat, CsvHasARowPerStageAndBatch) {
  EXPECT_EQ(to_csv(two_stages()),
            "experiment,stage,runs,top1_mean,top1_sd,parameters,macs,file_bytes,phase,batch,ms_median,ms_p10,ms_p90,"
            "ms_alone,speedup_median,speedup_p10,speedup_p90,speedup_of_medians,processor,threads,parameters_least,parameters_"
            "greatest,macs_least,macs_greatest\n"
            "small,dense,2,0.910000,,1000,2500000,4096,inference,8,2,1.5,3,1.9,1,1,1,1,a "
            "processor,2,1000,1000,2500000,2500000\n"
            "small,factored,1,0.875000,,1000,2500000,4096,inference,8,1,0.75,1.5,1,2,1.75,2.25,1.9,a "
            "processor,2,1000,1000,2500000,2500000\n");
}

TEST(TableFormat, SeedsWithDifferentNetworksSaySo) {
  Table table = two_stages();
  table.rows[0].range =
      CostRange{.least_parameters = 900, .greatest_parameters = 1000, .least_macs = 2'400'000, .greatest_macs = 2'600'000};
  const std::string text = to_markdown(table);
  EXPECT_NE(text.find("| 1000 (900-1000) | 2.50 (2.40-2.60) | 4 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| small | factored | 1 | 87.50 | 1000 | 2.50 | 4 |"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("size and time are the first run's, with the range over all in brackets.\n")) << text;
  EXPECT_NE(to_csv(table).find(",a processor,2,900,1000,2400000,2600000\n"), std::string::npos) << to_csv(table);
  EXPECT_EQ(to_value(table).at("rows").as_list().at(0).at("macs_range"), Value::list({2'400'000, 2'600'000}));
}

TEST(TableFormat, CsvKeepsItsColumnsWithoutTimings) {
  Table table = two_stages();
  table.rows.resize(1);
  table.rows[0].latency.clear();
  const std::string csv = to_csv(table);
  const std::size_t second = csv.find('\n') + 1;
  EXPECT_EQ(std::count(csv.begin(), csv.begin() + static_cast<std::ptrdiff_t>(second), ','),
            std::count(csv.begin() + static_cast<std::ptrdiff_t>(second), csv.end(), ','));
}

TEST(TableFormat, NamesCannotBreakTheColumns) {
  Table table = two_stages();
  table.rows[0].stage = "a, \"b\" | c";
  EXPECT_NE(to_csv(table).find("small,\"a, \"\"b\"\" | c\",2,"), std::string::npos) << to_csv(table);
  EXPECT_NE(to_markdown(table).find("| small | a, \"b\" \\| c | 2 |"), std::string::npos) << to_markdown(table);
}

TEST(TableFormat, JsonKeepsEveryRunsAccuracy) {
  const Value value = parse_json(to_json(to_value(two_stages())), "table");
  EXPECT_EQ(value.at("processor"), Value("a processor"));
  const Value& row = value.at("rows").as_list().at(0);
  EXPECT_EQ(row.at("top1"), Value::list({0.9, 0.92}));
  EXPECT_EQ(row.at("macs"), Value(2500000));
  const Value& latency = value.at("rows").as_list().at(1).at("latency").as_list().at(0);
  EXPECT_EQ(latency.at("batch"), Value(8));
  EXPECT_DOUBLE_EQ(latency.at("speedup").at("p90").as_double(), 2.25);
  EXPECT_DOUBLE_EQ(latency.at("of_medians").as_double(), 1.9);
  EXPECT_DOUBLE_EQ(latency.at("alone_ms").as_double(), 1);
}

TEST(TableFormat, SaysWhoseTimesAreFarFromThoseAlone) {
  Table table = two_stages();
  table.rows[1].latency[0].alone = 0.8;  // 1 ms when timed in turns
  table.rows[0].latency[0].alone = 2.3;
  EXPECT_NE(to_markdown(table).find(
                "Times in turn that are more than 10 % from the network's time alone, as time in turn over time alone: dense "
                "of small at batch 8 0.87, factored of small at batch 8 1.25.\n"),
            std::string::npos)
      << to_markdown(table);
}

// The rows of one table may be of several devices. A GPU row names no threads.
TEST(TableFormat, AGpuIsToldWithoutThreads) {
  Table table = two_stages();
  table.rows[1].experiment = "large";
  table.rows[1].processor = "a GPU, its libraries, recorded and replayed";
  const std::string text = to_markdown(table);
  EXPECT_NE(text.find("Timed on a processor, 2 threads: small; a GPU, its libraries, recorded and replayed: large; networks"),
            std::string::npos)
      << text;
  EXPECT_NE(to_csv(table).find(",\"a GPU, its libraries, recorded and replayed\",0,"), std::string::npos) << to_csv(table);
  table = two_stages();
  table.processor = "a GPU";
  table.threads = 0;
  EXPECT_NE(to_markdown(table).find("\nTimed on a GPU, networks interleaved"), std::string::npos) << to_markdown(table);
}

}  // namespace
}  // namespace tessera

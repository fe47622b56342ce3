// How a table shows given results: choices, pairs of seeds, answers, pages.
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "train/reproduce/comparison.h"
#include "train/reproduce/page.h"
#include "train/reproduce/picture.h"
#include "train/reproduce/table_view.h"

namespace tessera::testing {
namespace {

CellResult cell(const std::string& arm, std::int64_t seed, double top1, double tuned, double val = 0.5) {
  CellResult result;
  result.key = str(arm, tuned);
  result.arm = arm;
  result.seed = seed;
  result.tuned = tuned;
  StageOutcome stage;
  stage.stage = "only";
  stage.test = Scored{"accuracy", top1};
  stage.val = val;
  stage.parameters = 1000;
  stage.macs = 2500000;
  result.stages.push_back(stage);
  result.train_seconds = 10.0 * static_cast<double>(seed);
  return result;
}

class Views : public ::testing::Test {
 protected:
  void SetUp() override {
    table_.name = "t";
    table_.tune = TuneConfig{"optimizer.lr", {0.1, 0.2}, 1};
    table_.latency.batch = {1, 8};
    for (const char* name : {"base", "other"}) {
      table_.arms.emplace_back();
      table_.arms.back().name = name;
    }
    table_.questions.push_back({"Is it worth it?", "other", "base"});
  }

  std::vector<ArmChoice> choices() const {
    std::vector<ArmChoice> arms;
    for (const ArmConfig& arm : table_.arms) {
      ArmChoice& choice = arms.emplace_back();
      choice.arm = &arm;
      choice.keys = {str(arm.name, 0.1), str(arm.name, 0.2)};
      choice.inputs.assign(2, arm.name.ends_with("long") ? Shape{1, 1024} : Shape{1, 256});
      choose(choice, table_, results_);
    }
    return arms;
  }
  TableView view() const { return view_of(table_, choices(), results_); }
  // Adds seed 1 at both tuned values, and seeds 2 and 3 at 0.2.
  void add_all(const std::string& arm, double first, double second, double third) {
    results_.append(cell(arm, 1, 0.1, 0.1, 0.4));
    results_.append(cell(arm, 1, first, 0.2, 0.6));
    results_.append(cell(arm, 2, second, 0.2));
    results_.append(cell(arm, 3, third, 0.2));
  }

  // Adds the times of both arms. The other arm takes half as long.
  void append_times(std::int64_t batch, Phase phase, double scale) {
    ArmTimes times;
    times.networks = timed_groups(view().rows).front().key;
    times.batch = batch;
    times.phase = name_of(phase);
    times.commit = "abc3";
    times.processor = "a processor";
    times.threads = 2;
    times.arms = {{"base", {4 * scale, 3 * scale, 5 * scale}, Summary{1, 1, 1}},
                  {"other", {2 * scale, 1 * scale, 3 * scale}, Summary{2, 1.5, 2.5}}};
    results_.append(times);
  }

  // Adds two arms that read a longer input. The second is compared with the first.
  void add_long_arms() {
    for (const char* name : {"base-long", "other-long"}) {
      table_.arms.emplace_back();
      table_.arms.back().name = name;
      add_all(name, 0.52, 0.72, 0.62);
    }
    table_.arms.back().against = "base-long";
  }
  // Adds their times. The second arm takes a quarter of the first one's time.
  void append_long_times() {
    ArmTimes times;
    times.networks = timed_groups(view().rows).at(1).key;
    times.batch = 8;
    times.processor = "a processor";
    times.arms = {{"base-long", {40, 30, 50}, Summary{1, 1, 1}}, {"other-long", {10, 9, 11}, Summary{4, 3, 5}}};
    results_.append(times);
  }

  TemporaryFolder folder_;
  TableFile table_;
  ResultsFile results_{real_vfs(), folder_ / "t.jsonl"};
};

TEST_F(Views, TheBestValidationAccuracyIsChosenOnceAllValuesHaveRun) {
  results_.append(cell("base", 1, 0.9, 0.1, 0.4));
  EXPECT_FALSE(choices().front().settled);
  EXPECT_TRUE(view().rows.empty());
  results_.append(cell("base", 1, 0.1, 0.2, 0.6));
  EXPECT_EQ(choices().front().tuned, 0.2) << "by val, whatever the test split says";
  EXPECT_EQ(view().rows.front().cells.size(), 1u);
  EXPECT_EQ(view().cells, 1u);
  EXPECT_EQ(view().wanted, 6u);
}

TEST_F(Views, AFailedValueIsNotChosen) {
  CellResult failed = cell("base", 1, 0, 0.1);
  failed.stages.clear();
  failed.failed = "NaN";
  results_.append(failed);
  results_.append(cell("base", 1, 0.5, 0.2, 0.0));
  EXPECT_EQ(choices().front().tuned, 0.2);
}

TEST_F(Views, DifferencesArePairedBySeed) {
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.52, 0.72, 0.62);
  const TableView all = view();
  EXPECT_NEAR(all.rows.at(1).difference.mean, 0.02, 1e-12);
  EXPECT_NEAR(all.rows.at(1).difference.low, 0.02, 1e-9) << "the seeds' own spread cancels";
  EXPECT_EQ(all.rows.at(0).difference.n, 0);
  EXPECT_EQ(answer_text(all.answers.front()),
            "Is it worth it? Yes: other is 2.00 points above base (95 % interval +2.00 to +2.00, 3 seeds).");
}

TEST_F(Views, AnswersMayBeNoOrUndecided) {
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.40, 0.60, 0.51);
  EXPECT_TRUE(answer_text(view().answers.front()).starts_with("Is it worth it? No: other is 9.67 points below base"));
  results_.append(cell("other", 3, 0.80, 0.2));
  EXPECT_TRUE(answer_text(view().answers.front()).starts_with("Is it worth it? Undecided: ")) << "the later line counts";
}

TEST_F(Views, AnArmMayRunWithSomeOfTheSeeds) {
  table_.arms.back().seeds = {2};
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.52, 0.72, 0.62);
  const TableView some = view();
  EXPECT_EQ(some.wanted, 4u);
  EXPECT_EQ(some.rows.at(1).cells.size(), 1u);
  EXPECT_EQ(some.rows.at(1).difference.n, 1);
}

TEST_F(Views, SparsityHasAColumnWhereThereIsAny) {
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.52, 0.72, 0.62);
  EXPECT_EQ(to_markdown(view(), "t.yaml", "t.svg").find("sparsity"), std::string::npos);
  for (const std::int64_t seed : {1, 2, 3}) {
    CellResult sparse = cell("other", seed, 0.5, 0.2, 0.6);
    sparse.stages.back().sparsity = 0.8754;
    sparse.file_bytes = 20480;
    results_.append(sparse);
  }
  const std::string page = to_markdown(view(), "t.yaml", "t.svg");
  EXPECT_NE(page.find("| MMACs | sparsity % | file KiB |"), std::string::npos) << page;
  EXPECT_NE(page.find("| 2.50 | 87.5 | 20 |"), std::string::npos) << page;
  EXPECT_NE(to_csv(view()).find(",0.8754,,,inference,1,"), std::string::npos);
}

TEST_F(Views, OneSeedHasNeitherAMeanNorAnInterval) {
  table_.seeds = {4};
  const std::string one = to_markdown(view(), "t.yaml", "t.svg");
  EXPECT_NE(one.find("is measured on the test split, with the last checkpoint, of seed 4. Each arm chose"), std::string::npos) << one;
  table_.seeds = {1, 2};
  const std::string two = to_markdown(view(), "t.yaml", "t.svg");
  EXPECT_NE(two.find("checkpoint: mean over seeds 1, 2. Differences are taken seed by seed"), std::string::npos) << two;
}

TEST_F(Views, VerdictsHaveAColumnWhereThereAreAny) {
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.52, 0.72, 0.62);
  EXPECT_EQ(to_markdown(view(), "t.yaml", "t.svg").find("layers compressed"), std::string::npos);
  CellResult judged = cell("other", 1, 0.5, 0.2, 0.6);
  judged.matched_layers = 6;
  judged.compressed_layers = 4;
  results_.append(judged);
  const std::string page = to_markdown(view(), "t.yaml", "t.svg");
  EXPECT_NE(page.find("| MMACs | layers compressed |"), std::string::npos) << page;
  EXPECT_NE(page.find("| 1000 | 2.50 | 4 of 6 |"), std::string::npos) << page;
  EXPECT_NE(page.find("those that are compressed after the last pass, of those that it matched, in the first seed's run."),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("| 1000 | 2.50 | - |"), std::string::npos) << page;
  EXPECT_NE(to_csv(view()).find(",6,4,inference,1,"), std::string::npos);
}

TEST_F(Views, TrainingTimesStandBehindThoseOfInference) {
  table_.training = LatencyConfig{.batch = {8}};
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.52, 0.72, 0.62);
  append_times(8, Phase::training, 10);
  const std::string page = to_markdown(view(), "t.yaml", "t.svg");
  EXPECT_NE(page.find("| training, batch 8: ms (p10-p90) |"), std::string::npos) << page;
  EXPECT_NE(page.find("| - | - | - | - | 20.00 (10.00-30.00) | 2.00 (1.50-2.50; 2.00) |"), std::string::npos) << page;
  EXPECT_NE(to_csv(view()).find(",training,8,20,10,30,,2,1.5,2.5,2\n"), std::string::npos) << to_csv(view());
  EXPECT_NE(to_svg(view()).find("training, seconds"), std::string::npos) << "no inference was timed";
}

TEST_F(Views, NamesTheCommitsThatItsResultsComeFrom) {
  for (const std::int64_t seed : {1, 2, 3}) {
    CellResult result = cell("base", seed, 0.5, 0.2);
    result.commit = seed < 3 ? "abc1" : "abc2";
    results_.append(result);
  }
  results_.append(cell("base", 1, 0.4, 0.1, 0.4));
  EXPECT_EQ(view().commits, (std::vector<std::string>{"abc1", "abc2"}));
  append_times(8, Phase::inference, 1);
  EXPECT_EQ(view().commits, (std::vector<std::string>{"abc1", "abc2", "abc3"}));
  const std::string page = to_markdown(view(), "t.yaml", "t.svg");
  EXPECT_NE(page.find(" Measured at abc1, abc2, abc3."), std::string::npos) << page;
  EXPECT_EQ(to_json(to_value(view(), "t.yaml").at("commits")), R"(["abc1","abc2","abc3"])");
}

TEST_F(Views, TimesOfDecodeStandBetweenThem) {
  table_.training = LatencyConfig{.batch = {8}};
  table_.decode = LatencyConfig{.batch = {1}, .repeats = 7};
  EXPECT_EQ(table_.repeats_of(Phase::decode), 7);
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.52, 0.72, 0.62);
  append_times(1, Phase::decode, 1);
  const std::string page = to_markdown(view(), "t.yaml", "t.svg");
  const std::size_t decode = page.find("| decode, batch 1: ms (p10-p90) |"), training = page.find("| training, batch 8: ms ");
  EXPECT_LT(decode, training) << page;
  EXPECT_NE(training, std::string::npos) << page;
  EXPECT_NE(page.find(" A decode time is that of one more position, with "), std::string::npos) << page;
  EXPECT_NE(to_csv(view()).find(",decode,1,2,1,3,,2,1.5,2.5,2\n"), std::string::npos) << to_csv(view());
}

TEST_F(Views, ArmsOfAnotherInputHaveTheirOwnTimesAndAreComparedAsTheyAsk) {
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.52, 0.72, 0.62);
  add_long_arms();
  append_times(8, Phase::inference, 1);
  append_long_times();
  const TableView all = view();
  EXPECT_NEAR(all.rows.at(2).difference.mean, 0.02, 1e-12) << "to the baseline";
  EXPECT_NEAR(all.rows.at(3).difference.mean, 0, 1e-12) << "to base-long";
  const std::string page = to_markdown(all, "t.yaml", "t.svg");
  for (const char* part :
       {"| arm | optimizer.lr | input | n | top-1 % | compared with | points over it (95 %) | parameters |",
        "| base | 0.2 | 256 | 3 | 60.00 ± 10.00 | - | baseline | 1000 | 2.50 | - | - | 4.00 (3.00-5.00) | "
        "1.00 (1.00-1.00; 1.00) | 20 |",
        "| other | 0.2 | 256 | 3 | 62.00 ± 10.00 | base | +2.00 (+2.00 to +2.00) higher | 1000 | 2.50 | - | - "
        "| 2.00 (1.00-3.00) | 2.00 "
        "(1.50-2.50; 2.00) | 20 |",
        "| base-long | 0.2 | 1024 | 3 | 62.00 ± 10.00 | base | +2.00 (+2.00 to +2.00) higher | 1000 | 2.50 | "
        "- | - | 40.00 (30.00-50.00) "
        "| - | 20 |",
        "| other-long | 0.2 | 1024 | 3 | 62.00 ± 10.00 | base-long | +0.00 (+0.00 to +0.00) undecided | 1000 "
        "| 2.50 | - | - | 10.00 "
        "(9.00-11.00) | 4.00 (3.00-5.00; 4.00) | 20 |",
        "Networks that are compared are timed in turn, batch norms folded, on a processor; speed-up is over the "
        "arm that a row is compared with. "
        "Arms with different inputs have no speed-up over each other."}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << " is not in\n" << page;
  }
  const std::string csv = to_csv(all);
  EXPECT_TRUE(csv.starts_with("arm,tuned,seeds,input,top1_mean,top1_sd,against,difference_mean,")) << csv;
  EXPECT_NE(csv.find("\nbase-long,0.2,3,1024,0.620000,0.100000,base,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",inference,8,40,30,50,,,,,\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",inference,8,10,9,11,,4,3,5,4\n"), std::string::npos) << csv;
  for (const auto& row : parse_csv(csv, "t.csv")) EXPECT_EQ(row.size(), 28u);
  const Value json = to_value(all, "tessera reproduce t.yaml");
  const Value::List& rows = json.at("rows").as_list();
  EXPECT_EQ(rows.at(2).at("input").as_list().front(), Value(1024));
  EXPECT_EQ(rows.at(3).at("against").as_string(), "base-long");
  EXPECT_EQ(rows.at(2).at("times").as_list().front().find("speedup"), nullptr);
  EXPECT_EQ(rows.at(3).at("times").as_list().front().at("speedup").at("median"), Value(4.0));
  EXPECT_EQ(rows.at(3).at("times").as_list().front().at("of_medians"), Value(4.0));
}

// The speed-up by the rounds' ratios may differ from that by the medians: both are shown, and the time alone if it differs.
TEST_F(Views, BothSpeedUpsAndTheTimeAloneAreTold) {
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.52, 0.72, 0.62);
  ArmTimes times;
  times.networks = timed_groups(view().rows).front().key;
  times.batch = 8;
  times.processor = "a processor";
  times.arms = {{"base", {4, 3, 5}, Summary{1, 1, 1}, 3.9}, {"other", {2, 1, 3}, Summary{2.2, 1.5, 2.5}, 1.6}};
  results_.append(times);
  const std::string page = to_markdown(view(), "t.yaml", "t.svg");
  EXPECT_NE(page.find("| 2.00 (1.00-3.00) | 2.20 (1.50-2.50; 2.00) |"), std::string::npos) << page;
  EXPECT_NE(page.find("as time in turn over time alone: other at batch 8 1.25."), std::string::npos) << page;
  EXPECT_NE(to_csv(view()).find(",inference,8,2,1,3,1.6,2.2,1.5,2.5,2\n"), std::string::npos) << to_csv(view());
  const Value json = to_value(view(), "tessera reproduce t.yaml");
  EXPECT_EQ(json.at("rows").as_list().at(1).at("times").as_list().front().at("alone_ms"), Value(1.6));
  const ResultsFile read_again(real_vfs(), folder_ / "t.jsonl");
  EXPECT_EQ(read_again.find_times(times.networks, "base", {.batch = 8})->arms.at(1).alone, 1.6);
}

// The arm shows its time against the baseline, which is the time that its speed-up belongs to.
TEST_F(Views, AnArmThatOthersAreComparedWithKeepsItsOwnSpeedUp) {
  table_.arms.emplace_back();
  table_.arms.back().name = "third";
  table_.arms.back().against = "other";
  for (const char* name : {"base", "other", "third"}) add_all(name, 0.50, 0.70, 0.60);
  append_times(8, Phase::inference, 1);
  ArmTimes times;
  times.networks = timed_groups(view().rows).at(1).key;
  times.batch = 8;
  times.arms = {{"other", {6, 6, 6}, Summary{1, 1, 1}}, {"third", {3, 3, 3}, Summary{2, 2, 2}}};
  results_.append(times);
  const auto time_of = [&](std::size_t row) { return view().rows.at(row).times.at(1).value(); };
  EXPECT_EQ(time_of(1).time.median, 2);
  EXPECT_EQ(time_of(1).speedup->median, 2);
  EXPECT_EQ(time_of(2).time.median, 3);
  EXPECT_EQ(time_of(2).speedup->median, 2);
  table_.baseline = "other";
  EXPECT_FALSE(view().rows.at(0).times.at(1)) << "base and other were timed, but over base";
}

TEST_F(Views, PagesHoldEveryArm) {
  add_all("base", 0.50, 0.70, 0.60);
  add_all("other", 0.52, 0.72, 0.62);
  append_times(8, Phase::inference, 1);
  const TableView all = view();
  const std::string page = to_markdown(all, "tessera reproduce t.yaml", "t.svg");
  for (const char* part :
       {"| base | 0.2 | 3 | 60.00 ± 10.00 | baseline | 1000 | 2.50 | - | - | 4.00 (3.00-5.00) | 1.00 (1.00-1.00; 1.00) | 20 |",
        "| other | 0.2 | 3 | 62.00 ± 10.00 | +2.00 (+2.00 to +2.00) higher |", "2.00 (1.50-2.50; 2.00)",
        "on a processor, 2 threads", "Each arm chose optimizer.lr from 2 values by the validation accuracy of seed 1"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << " is not in\n" << page;
  }
  TableView taken = all;
  taken.file.arms.back().tuned_as = "base";
  const std::string told = to_markdown(taken, "tessera reproduce t.yaml", "t.svg");
  EXPECT_NE(told.find("Arms chose optimizer.lr from 2 values by the validation accuracy of seed 1. The value of base is also "
                      "that of other."),
            std::string::npos)
      << told;
  const auto rows = parse_csv(to_csv(all), "t.csv");
  ASSERT_EQ(rows.size(), 5u) << "two arms, two batches";
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows.front().size());
  const Value json = to_value(all, "tessera reproduce t.yaml");
  EXPECT_EQ(json.at("command").as_string(), "tessera reproduce t.yaml");
  EXPECT_EQ(json.at("tune").at("key").as_string(), "optimizer.lr");
  EXPECT_EQ(json.at("rows").as_list().at(1).at("difference").at("verdict").as_string(), "higher");
  EXPECT_TRUE(json.at("rows").as_list().at(0).at("difference").at("low").is_null());
}

// The names of arms stay readable even if their points coincide.
TEST_F(Views, NamesOfThePictureDoNotCoverEachOther) {
  table_.tune.reset();
  table_.arms.clear();
  for (int i = 0; i < 8; ++i) {
    table_.arms.emplace_back();
    table_.arms.back().name = str("arm", i);
  }
  table_.questions.clear();
  std::vector<ArmChoice> arms;
  for (const ArmConfig& arm : table_.arms) {
    results_.append(cell(arm.name, 1, 0.6, 0.1));
    ArmChoice& choice = arms.emplace_back();
    choice.arm = &arm;
    choice.keys = {str(arm.name, 0.1)};
    choice.inputs = {{1, 256}};
    choose(choice, table_, results_);
  }
  const std::string svg = to_svg(view_of(table_, arms, results_));
  std::vector<std::string> places;
  for (const std::string& line : split(svg, '\n')) {
    if (line.find(">arm") != std::string::npos) places.push_back(line.substr(line.find("y=\""), 9));
  }
  ASSERT_EQ(places.size(), 8u) << svg;
  std::ranges::sort(places);
  EXPECT_EQ(std::ranges::adjacent_find(places), places.end());
}

TEST_F(Views, APictureOfNothingIsStillAPicture) {
  const std::string svg = to_svg(view());
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST_F(Views, AHalfWrittenLineIsCutOffAndAnotherFaultIsNamed) {
  results_.append(cell("base", 1, 0.9, 0.1));
  const std::string path = folder_ / "t.jsonl";
  const std::string whole = real_vfs().read_file(path);
  write_file_atomically(real_vfs(), path, whole + "{\"key\": \"ha");
  ResultsFile again(real_vfs(), path);
  EXPECT_EQ(again.cells().size(), 1u);
  again.append(cell("base", 2, 0.9, 0.1));
  EXPECT_EQ(ResultsFile(real_vfs(), path).cells().size(), 2u);
  write_file_atomically(real_vfs(), path, whole + "{\"key\": 5}\n");
  const std::string message = message_of<IoError>([&] { ResultsFile(real_vfs(), path); });
  EXPECT_NE(message.find("t.jsonl:2: is no result of a table"), std::string::npos) << message;
}

}  // namespace
}  // namespace tessera::testing

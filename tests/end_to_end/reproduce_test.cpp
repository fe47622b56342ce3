// A table that reproduces itself: arms share their first stages, a killed call is continued, a second call runs nothing, and a
// failed arm does not stop the others.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "core/config/value.h"
#include "core/cpu/onednn_version.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_table.h"
#include "tests/end_to_end/small_text.h"

namespace tessera::testing {
namespace {

// tucker2 leaves the 1x1 convolution dense. The dense arm has no pass.
void expect_verdict(const Value& line) {
  SCOPED_TRACE(line.at("name").as_string());
  if (line.at("arm").as_string() == "dense") {
    EXPECT_EQ(line.find("matched_layers"), nullptr);
    EXPECT_EQ(line.find("compressed_layers"), nullptr);
  } else {
    EXPECT_EQ(line.at("matched_layers").as_int(), 2);
    EXPECT_EQ(line.at("compressed_layers").as_int(), 1);
  }
}

TEST_F(Reproduce, RunsWhatIsMissingAndNothingTwice) {
  const Outcome planned = reproduce("a", {"--dry-run"});
  expect_outcome(planned, 0, "dense-lr0.05-seed1");
  expect_in(planned.output, "fork dense-lr0.05-seed1 at pretrain");
  expect_in(planned.output, "9 cells to run, about ");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a/runs")) << "a dry run writes nothing";

  const Outcome first = reproduce("a");
  expect_outcome(first, 0, "[1/6] dense-lr0.05-seed1: train");
  expect_in(first.output, "direct-lr0.05-seed1: fork");
  const std::string forked = folder_ / "a/runs/small/direct-lr0.05-seed1/1";
  expect_in(read_bytes(forked + "/train.log"),
            str("forked from ", folder_ / "a/runs/small/dense-lr0.05-seed1/1", " at pretrain\n"));
  const std::vector<Value> lines = results("a");
  ASSERT_EQ(lines.size(), 3u * 2 + 3 + 3) << "two values and another seed of three arms; three batches on the clock";
  EXPECT_EQ(lines.front().at("stages").as_list().size(), 2u);
  EXPECT_EQ(lines.front().at("steps").as_int(), 13 + 8);
  for (const Value& line : lines) {
    if (line.find("arm") != nullptr) expect_verdict(line);
  }
  const std::string page = read_bytes(folder_ / "a/small.md");
  for (const char* part : {"| dense |", "| baseline |", "Is it better? ", "2 seeds", "| Another | 91.50 |", "![Accuracy",
                           "| truncated |", "| layers compressed |", "| 1 of 2 |"}) {
    expect_in(page, part);
  }
  expect_in(read_bytes(folder_ / "a/small.svg"), ">smaller</text>");
  EXPECT_EQ(parse_json(read_bytes(folder_ / "a/small.json"), "small.json").at("rows").as_list().size(), 3u);

  const Outcome second = reproduce("a");
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_EQ(second.output.find("[1/"), std::string::npos) << second.output;
  EXPECT_EQ(results("a").size(), lines.size());
  EXPECT_EQ(read_bytes(folder_ / "a/small.md"), page);
  std::filesystem::remove_all(folder_ / "a/runs");
  const Outcome nothing_left = reproduce("a", {"--dry-run"});
  expect_outcome(nothing_left, 0, "0 cells to run");
  expect_in(nothing_left.output, "every cell has its result; --results FOLDER runs the cells again");
  EXPECT_EQ(reproduce("a").exit_code, 0) << "results alone are enough";
}

TEST_F(Reproduce, KilledFiveTimesItEndsWithTheSameTable) {
  ASSERT_EQ(reproduce("straight").exit_code, 0);
  for (const char* place : {"step:5", "save:16", "factorise:1", "step:22", "step:17"}) {
    const Outcome killed = reproduce("killed", {}, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << place << ": " << killed.output;
  }
  const std::string results_file = folder_ / "killed/small.jsonl";
  write_bytes(results_file, read_bytes(results_file) + "{\"key\": \"half a li");
  const Outcome ended = reproduce("killed");
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(table_without_clocks("killed"), table_without_clocks("straight"));
}

TEST_F(Reproduce, AnArmThatFailsStopsNoOther) {
  write_bytes(folder_ / "small.yaml", R"(
version: 1
name: small
seeds: [1]
arms:
  - {name: wild, experiment: dense.yaml, set: ["stages[0].optimizer.lr=1.0e+30"]}
  - {name: dense, experiment: dense.yaml}
latency: {batch: [1], repeats: 5}
)");
  const Outcome outcome = reproduce("a");
  expect_outcome(outcome, 0, "wild-seed1: failed: ");
  expect_in(outcome.output, "dense-seed1: ");
  const std::string page = read_bytes(folder_ / "a/small.md");
  expect_in(page, "- wild, seed 1: ");
  EXPECT_EQ(page.find("tessera fork"), std::string::npos) << "no command whose run is on another machine\n" << page;
  EXPECT_EQ(reproduce("a").output.find("[1/"), std::string::npos) << "NaN is a result";

  // A failure whose cause is not the settings is tried again.
  std::filesystem::remove(folder_ / "a/small.jsonl");
  std::filesystem::remove_all(folder_ / "a/runs");
  std::filesystem::create_directories(folder_ / "a/runs/small");
  write_bytes(folder_ / "a/runs/small/wild-seed1", "a file where a folder should be");
  const Outcome blocked = reproduce("a");
  expect_outcome(blocked, 1, "1 failed; the next call tries them again");
  expect_in(read_bytes(folder_ / "a/small.md"), "1 of 2 cells have a result.");
}

// The last stage that the arm shares no longer holds the teacher's network.
TEST_F(Reproduce, AnArmThatDistillsForksWhereItsTeacherIs) {
  write_bytes(folder_ / "small.yaml", R"(
version: 1
name: small
seeds: [1]
arms:
  - {name: plain, experiment: factored.yaml}
  - {name: taught, experiment: factored.yaml, set: ["stages[2].distill={from: pretrain}"]}
latency: {batch: [1], repeats: 5}
)");
  expect_in(reproduce("a", {"--dry-run"}).output, "fork plain-seed1 at pretrain");
  const Outcome outcome = reproduce("a");
  expect_outcome(outcome, 0, "plain-seed1/1 at pretrain");
  EXPECT_EQ(results("a").size(), 3u) << outcome.output;
}

TEST_F(Reproduce, AFolderThatIsNoRunOfThisVersionStopsNoCell) {
  std::filesystem::create_directories(folder_ / "a/runs/small/dense-lr0.05-seed1/1");
  write_bytes(folder_ / "a/runs/small/dense-lr0.05-seed1/1/config.resolved.yaml", "version: 7\n");
  const Outcome outcome = reproduce("a");
  expect_outcome(outcome, 0, "passed over ");
  expect_in(outcome.output, "dense-lr0.05-seed1: train");
}

TEST_F(Reproduce, StopsWhenAskedAndGoesOn) {
  RunningProgram running({"reproduce", folder_ / "small.yaml", "--runs", folder_ / "a/runs", "--results", folder_ / "a"});
  ASSERT_TRUE(running.wait_for("dense-lr0.05-seed1: train"));
  running.send(SIGTERM);
  const Outcome stopped = running.finish();
  expect_outcome(stopped, 3, "stopped; everything is saved. Go on with:\n  tessera reproduce ");
  const Outcome ended = reproduce("a");
  expect_outcome(ended, 0, "[1/6] dense-lr0.05-seed1: ");
}

TEST_F(Reproduce, AnArmMayTakeAnothersChoiceAndSomeOfTheSeeds) {
  write_bytes(folder_ / "small.yaml", std::string(kTableHead) + R"(
arms:
  - {name: dense, experiment: dense.yaml}
  - {name: direct, experiment: factored.yaml, tuned_as: dense, seeds: [2]}
latency: {batch: [1], repeats: 5}
)");
  const Outcome outcome = reproduce("a");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::string lines = read_bytes(folder_ / "a/small.jsonl");
  int cells = 0;
  for (const std::string& line : split(lines, '\n')) cells += line.find("\"train_seconds\"") != std::string::npos ? 1 : 0;
  EXPECT_EQ(cells, 4) << "dense with two values of seed 1, and with seed 2; direct with seed 2";
  EXPECT_NE(lines.find("direct-lr"), std::string::npos);
  EXPECT_EQ(lines.find("direct-lr0.05-seed1"), std::string::npos);
  EXPECT_EQ(lines.find("direct-lr0.01-seed1"), std::string::npos);
  expect_outcome(reproduce("a"), 0, "small.md");
}

constexpr const char* kGpt = R"(
version: 1
name: gpt
seed: 5
threads: {compute: 1, loader: 0}
data: {name: text, files: [a.txt], split: [80, 10, 10], sequence: 32, batch: 4}
model: {name: gpt, layers: 1, width: 24, heads: 2, vocabulary: 256, length: 32}
optimizer: {name: adamw, lr: 0.01}
stages: [{name: all, train: 2s}]
)";

// The later arms' networks do not take the first arm's sequences, so that timing them together is an error.
class ReproduceLengths : public Reproduce {
 protected:
  void SetUp() override {
    write_bytes(folder_ / "a.txt", numbered_lines(180));
    write_bytes(folder_ / "gpt.yaml", kGpt);
    write_table("baseline: long", "against: short");
  }
  void write_table(const std::string& baseline, const std::string& of_last) {
    write_bytes(folder_ / "small.yaml", str(R"(
version: 1
name: small
seeds: [1]
arms:
  - {name: long, experiment: gpt.yaml}
  - {name: long-thin, experiment: gpt.yaml, set: [model.width=16]}
  - {name: short, experiment: gpt.yaml, set: [data.sequence=16, model.length=16]}
  - {name: short-thin, experiment: gpt.yaml, set: [data.sequence=16, model.length=16, model.width=16], )",
                                            of_last, "}\n", baseline, "\nlatency: {batch: [2], repeats: 5}\n",
                                            "decode: {batch: [1], repeats: 5}\ntraining: {batch: [4], repeats: 5}\n"));
  }
  // The names of the arms that were timed in turn in decode, one text per comparison.
  std::vector<std::string> decoded() const {
    std::vector<std::string> found;
    for (const Value& line : results("a")) {
      if (line.find("networks") == nullptr || line.at("phase").as_string() != "decode") continue;
      std::string& arms = found.emplace_back();
      for (const Value& arm : line.at("arms").as_list()) arms += (arms.empty() ? "" : " ") + arm.at("arm").as_string();
    }
    return found;
  }
};

using Names = std::vector<std::string>;

TEST_F(ReproduceLengths, EachArmIsTimedOnItsOwnSequences) {
  expect_outcome(reproduce("a", {"--dry-run"}), 0, "4 cells to run, about ");
  const Outcome outcome = reproduce("a");
  for (const char* part : {"timing 2 networks on inputs of [32] at batch 2, inference", "on inputs of [32] at batch 4, training",
                           "timing 2 networks on inputs of [16] at batch 1, decode", "on inputs of [16] at batch 4, training"})
    expect_outcome(outcome, 0, part);
  EXPECT_EQ(decoded(), Names({"long long-thin", "short short-thin"}));
  const auto rows = parse_csv(read_bytes(folder_ / "a/small.csv"), "small.csv");
  ASSERT_EQ(rows.size(), 1u + 12u);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(rows[i].at(3), rows[i].front().starts_with("long") ? "32" : "16");
    EXPECT_FALSE(rows[i].at(rows[i].size() - 8).empty()) << "milliseconds";
    EXPECT_EQ(rows[i].back().empty(), rows[i].front() == "short") << "speed-up";
  }
  expect_in(read_bytes(folder_ / "a/small.md"), "| short-thin | 16 | 1 | ");
}

TEST_F(ReproduceLengths, AnotherComparisonIsTimedAnew) {
  write_table("baseline: long", "");
  ASSERT_EQ(reproduce("a").exit_code, 0);
  EXPECT_EQ(decoded(), Names({"long long-thin", "short", "short-thin"}));
  write_table("baseline: long", "against: short");
  ASSERT_EQ(reproduce("a").exit_code, 0);
  EXPECT_EQ(decoded(), Names({"long long-thin", "short", "short-thin", "short short-thin"}));
  write_table("baseline: long-thin", "against: short");
  ASSERT_EQ(reproduce("a").exit_code, 0);
  ASSERT_EQ(decoded().size(), 5u);
  EXPECT_EQ(decoded().back(), "long-thin long");
  EXPECT_EQ(reproduce("a").output.find("timing"), std::string::npos);
}

TEST_F(ReproduceLengths, AnArmOfAnotherInputCannotBeNamed) {
  write_table("baseline: short", "against: long");
  expect_outcome(reproduce("none"), 2,
                 "small.yaml:9:113: arms[3].against: 'long' reads samples of [32], this arm of [16]; networks are timed against "
                 "each other on inputs of one shape");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
}

TEST_F(Reproduce, MistakesAreNamedBeforeAnythingRuns) {
  const auto refused = [&](const std::string& table, const std::vector<std::string>& parts) {
    write_bytes(folder_ / "small.yaml", "version: 1\nname: small\n" + table);
    const Outcome outcome = reproduce("none");
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    for (const std::string& part : parts) expect_in(outcome.output, part);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none")) << table;
  };
  const std::string arms = "arms: [{name: dense, experiment: dense.yaml}, {name: other, experiment: factored.yaml}]\n";
  refused("arms: []\n", {"small.yaml:3:7: arms: is empty"});
  refused("arms: [{name: a, experiment: dense.yaml}, {name: a, experiment: dense.yaml}]\n", {"two arms have one name"});
  refused(arms + "baseline: denes\n", {"small.yaml:4:11: baseline: 'denes' is no arm"});
  refused(arms + "questions: [{ask: Why, arm: dense, against: nobody}]\n", {"questions[0].against: 'nobody' is no arm"});
  const std::string three = "arms: [{name: a, experiment: dense.yaml}, {name: b, experiment: dense.yaml}, {name: c, ";
  refused(three + "against: nobody, experiment: dense.yaml}]\n", {"small.yaml:3:97: arms[2].against: 'nobody' is no other arm"});
  refused(three + "against: c, experiment: dense.yaml}]\n", {"small.yaml:3:97: arms[2].against: 'c' is no other arm"});
  refused(three + "against: b, experiment: dense.yaml}]\nbaseline: c\n",
          {"small.yaml:3:97: arms[2].against: has no place in the baseline, which is compared with no arm"});
  refused(three + "against: b, experiment: dense.yaml}, {name: d, experiment: dense.yaml, against: c}]\n",
          {"small.yaml:3:168: arms[3].against: 'c' is itself compared with 'b'; name an arm without this key"});
  refused(arms + "seeds: [1, 1]\n", {"seeds: needs one or more seeds that differ"});
  refused("arms: [{name: a, experiment: dense.yaml, seeds: [4]}]\n", {"arms[0].seeds: needs seeds of the table's that differ"});
  refused("arms: [{name: a, experiment: dense.yaml, tuned_as: b}]\n",
          {"arms[0].tuned_as: has no effect: the table tunes nothing"});
  const std::string tuned = "tune: {key: optimizer.lr, values: [0.1, 0.2]}\narms: [{name: a, experiment: dense.yaml}, ";
  refused(tuned + "{name: b, experiment: dense.yaml, tuned_as: b}]\n", {"arms[1].tuned_as: 'b' is no other arm"});
  refused(tuned + "{name: b, experiment: factored.yaml, tuned_as: a}, {name: c, experiment: dense.yaml, tuned_as: b}]\n",
          {"arms[2].tuned_as: 'b' is no other arm that chooses for itself"});
  refused(arms + "tune: {key: optimizer.lr, values: [0.1]}\n", {"tune.values: needs two or more values that differ"});
  refused(arms + "tune: {key: optimizer.rl, values: [0.1, 0.2]}\n", {"optimizer.rl: unknown key; did you mean 'lr'?"});
  refused("arms: [{name: a, experiment: dense.yaml, set: [seed=4]}]\n", {"arms[0].set: may not set seed or name"});
  refused("arms: [{name: a, experiment: factored.yaml, set: ['stages[1].factorise.keep=faster']}]\n",
          {"stages[1].factorise.keep: faster is decided by a clock, which deterministic: true forbids"});
  refused(arms + "latency: {batch: []}\n", {"latency: needs a batch size"});
  refused(arms + "training: {batch: []}\n", {"training: needs a batch size"});
  refused(arms + "decode: {batch: []}\n", {"decode: needs a batch size"});
  refused(arms + "decode: {batch: [1]}\n", {"model: the table times decode, but the network reads no tokens"});
  refused("arms: [{name: a, experiment: dense.yaml}, {name: b, experiment: dense.yaml, set: [threads.compute=1]}]\n",
          {"threads.compute: is 1 in arm b and 2 in arm a; the networks of a table are timed together"});
  if (cpu::onednn_has_bf16()) {
    refused("arms: [{name: a, experiment: dense.yaml}, {name: b, experiment: factored.yaml, set: [precision=bf16]}]\n",
            {"precision: is bf16 in arm b and f32 in arm a"});
  }
  refused(arms + "sedes: [1]\n", {"sedes: unknown key; did you mean 'seeds'?"});
  refused("arms: [{name: a, experiment: none.yaml}, {name: b, experiment: dense.yaml, set: [optimizer.lr=fast]}]\n",
          {"none.yaml", "optimizer.lr"});
  refused("arms: [{name: a, experiment: dense.yaml, set: [data.val=0]}]\ntune: {key: optimizer.lr, values: [0.1, 0.2]}\n",
          {"data.val: leaves no validation split, by which the table chooses optimizer.lr"});
  refused("arms: [{name: a, experiment: factored.yaml, set: ['stages[1].factorise.layers=conv9']}]\n",
          {"stages[1].factorise.layers"});
}

}  // namespace
}  // namespace tessera::testing

// The commands as a user types them.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/tiny_experiment.h"

namespace tessera::testing {
namespace {

constexpr const char* kBlocks = R"(
data: {name: glyphs, count: 200, test_count: 50, batch: 30, val: 0.1}
optimizer: {name: sgd, lr: 0.05}
stages:
  - {name: dense, train: 2e}
  - {name: tucker, factorise: {keep: always, layers: conv2, ranks: {out: 4, in: 4}}, train: 1e}
checkpoint: {every: 1000e, best: false}
report: {latency: {batch: [1, 3], repeats: 5}}
)";

bool contains(const Outcome& outcome, const std::string& text) { return outcome.output.find(text) != std::string::npos; }

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t before = text.rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

class Program : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(file_, tiny_experiment(kBlocks)); }

  std::vector<std::string> train_arguments(const std::vector<std::string>& more = {}) const {
    return joined({"train", file_, "--runs", folder_ / "runs"}, more);
  }
  Outcome expect_done(const std::vector<std::string>& arguments) const {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return outcome;
  }
  std::string run_path(int number) const { return folder_ / str("runs/tiny/", number); }
  // The table alone. Progress goes to standard error.
  std::string table(const std::string& format, const std::vector<std::string>& runs) const {
    expect_done(joined({"table", "--format", format, "--output", folder_ / "table"}, runs));
    return read_bytes(folder_ / "table");
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "tiny.yaml";
};

TEST_F(Program, EachVerbOfAFirstExperimentNamesTheNext) {
  const std::string name = folder_ / "first";
  const std::string file = name + ".yaml";
  EXPECT_EQ(last_line(expect_done({"init", name}).output), "next: tessera validate " + file);
  EXPECT_EQ(expect_done({"validate", file}).output, file + ": ok\nnext: tessera plan " + file + "\n");
  const Outcome plan = expect_done({"plan", file, "data.count=200", "data.test_count=50"});
  EXPECT_TRUE(contains(plan, "stage tucker")) << plan.output;
  EXPECT_EQ(last_line(plan.output), "next: tessera train " + file);
  const Outcome layers = expect_done({"layers", file, "data.count=200", "data.test_count=50"});
  EXPECT_TRUE(contains(layers, "layer3.0.conv2")) << layers.output;
  EXPECT_EQ(last_line(layers.output), "next: tessera train " + file);
  const Outcome again = run_program({"init", name});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(contains(again, "exists already")) << again.output;
}

TEST_F(Program, SchemaListsKeysForPeopleAndPrograms) {
  EXPECT_TRUE(contains(expect_done({"schema"}), "stages[].factorise.ranks.macs"));
  const Value list = parse_json(expect_done({"schema", "--json"}).output, "schema");
  const auto& rows = list.as_list();
  const auto row = std::find_if(rows.begin(), rows.end(), [](const Value& r) { return r.at("key") == Value("checkpoint.keep"); });
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->at("type"), Value("integer"));
  EXPECT_EQ(row->at("default"), Value("3"));
}

TEST_F(Program, BadInputExitsWithTwo) {
  const Outcome misspelled = run_program({"trian", file_});
  EXPECT_EQ(misspelled.exit_code, 2);
  EXPECT_NE(misspelled.output.find("tessera: there is no verb 'trian'; did you mean 'train'?"), std::string::npos)
      << misspelled.output;
  expect_outcome(run_program({}), 2, "a verb is needed (tessera --help lists the verbs)");
  EXPECT_EQ(run_program({"train", file_, "--time-limit", "soon", "--runs", folder_ / "runs"}).exit_code, 2);
  for (const char* verb : {"train", "validate", "plan", "layers"}) {
    EXPECT_EQ(run_program({verb, folder_ / "none.yaml"}).exit_code, 2) << verb;
  }
  for (const char* verb : {"resume", "status", "table"}) {
    const Outcome outcome = run_program({verb, folder_ / "none"});
    EXPECT_EQ(outcome.exit_code, 2) << verb;
    EXPECT_TRUE(contains(outcome, "no run folder ")) << outcome.output;
  }
  EXPECT_EQ(run_program({"--version"}).exit_code, 0);
  EXPECT_EQ(run_program({"train", "--help"}).exit_code, 0);
}

TEST_F(Program, TheTableOfAFinishedRunHasARowPerStage) {
  const Outcome trained = expect_done(train_arguments());
  EXPECT_EQ(last_line(trained.output), "next: tessera table " + run_path(1));

  const std::string markdown = table("markdown", {run_path(1)});
  EXPECT_NE(markdown.find("| tiny | dense | 1 |"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("| tiny | tucker | 1 |"), std::string::npos) << markdown;
  const std::string csv = table("csv", {run_path(1)});
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5) << csv;  // a header, then two stages at two batch sizes
  const Value json = parse_json(table("json", {run_path(1)}), "table");
  const auto& rows = json.at("rows").as_list();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("parameters"), Value(8 * 9 + 8 + 8 * 72 + 8 + 90));
  EXPECT_EQ(rows[1].at("parameters"), Value(8 * 9 + 8 + 4 * 8 + 9 * 16 + 4 * 8 + 8 + 90));
  EXPECT_EQ(rows[1].at("latency").as_list().size(), 2u);

  const Outcome status = expect_done({"status", run_path(1)});
  EXPECT_EQ(status.output.find("finished  stage tucker  step 6/6"), 0u) << status.output;
  EXPECT_TRUE(contains(status, "checkpoint at step 19, ")) << status.output;
  EXPECT_EQ(parse_json(expect_done({"status", run_path(1), "--json"}).output, "status").at("state"), Value("finished"));
}

TEST_F(Program, SeedsMakeOneRunEachAndShareARow) {
  expect_done(train_arguments({"--seeds", "1,2,3", "report.latency.batch=[1]"}));
  const std::string text = table("markdown", {run_path(1), run_path(2), run_path(3)});
  EXPECT_NE(text.find("| tiny | dense | 3 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| tiny | tucker | 3 |"), std::string::npos) << text;
  EXPECT_NE(text.find(" ± "), std::string::npos) << text;
  EXPECT_NE(read_bytes(run_path(1) + "/metrics.jsonl"), read_bytes(run_path(2) + "/metrics.jsonl"));
}

TEST_F(Program, SigtermStopsAndResumeFinishes) {
  // Long enough for the signal to arrive in the middle, and slow enough to stay finite.
  RunningProgram program(train_arguments({"stages[0].train=300e", "log_every=6", "optimizer.lr=0.005"}));
  ASSERT_TRUE(program.wait_for("dense epoch 1 ")) << program.finish().output;
  program.send(SIGTERM);
  const Outcome stopped = program.finish();
  ASSERT_EQ(stopped.exit_code, 3) << stopped.output;
  EXPECT_EQ(last_line(stopped.output), "  tessera resume " + run_path(1));
  EXPECT_EQ(run_program({"status", run_path(1)}).output.find("stopped  stage dense"), 0u);
  const Outcome resumed = run_program({"resume", run_path(1)});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_TRUE(contains(resumed, "dense epoch 300 "));
}

TEST_F(Program, ARunThatCannotBeginLeavesNoFolder) {
  const Outcome outcome = run_program(train_arguments({"model.layers=[flatten, {linear: {outt: 10}}]"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome, "linear.outt: unknown key; did you mean 'out'?")) << outcome.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/tiny"));
}

TEST_F(Program, ARunThatFailsSaysSo) {
  const Outcome outcome = run_program(train_arguments({"optimizer.lr=1e30", "log_every=1"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome, "lower the learning rate")) << outcome.output;
  EXPECT_EQ(expect_done({"status", run_path(1)}).output.find("failed  stage dense"), 0u);
}

TEST_F(Program, StatusOfAKilledRunSaysSo) {
  ASSERT_EQ(run_program(train_arguments(), {"TESSERA_KILL_AT=step:3"}).exit_code, 128 + SIGKILL);
  const Outcome status = expect_done({"status", run_path(1)});
  EXPECT_EQ(status.output.find("killed  stage dense"), 0u) << status.output;
  EXPECT_FALSE(contains(status, "ETA")) << status.output;
  const Value json = parse_json(expect_done({"status", run_path(1), "--json"}).output, "status");
  EXPECT_EQ(json.at("state"), Value("killed"));
  EXPECT_EQ(json.at("stage"), Value("dense"));
}

TEST_F(Program, PrintsTheMessagesThatAreAskedFor) {
  const Outcome unknown = run_program(train_arguments(), {"TESSERA_LOG=loud"});
  EXPECT_EQ(unknown.exit_code, 2) << unknown.output;
  EXPECT_TRUE(contains(unknown, "TESSERA_LOG: unknown level 'loud'; it is debug, info, warning or error")) << unknown.output;
  EXPECT_FALSE(std::filesystem::exists(run_path(1)));
  const Outcome debug = run_program(train_arguments(), {"TESSERA_LOG=debug"});
  EXPECT_EQ(debug.exit_code, 0) << debug.output;
  EXPECT_TRUE(contains(debug, "tessera: decisions: keep.layer tucker2_conv2d")) << debug.output;
  const Outcome usual = run_program(train_arguments());
  EXPECT_EQ(usual.exit_code, 0) << usual.output;
  EXPECT_FALSE(contains(usual, "tessera: decisions: ")) << usual.output;
}

TEST_F(Program, TheInstructionSetIsAskedForRecordedAndItsChangeTold) {
  const Outcome unknown = run_program(train_arguments(), {"TESSERA_ISA=sse4"});
  EXPECT_EQ(unknown.exit_code, 2) << unknown.output;
  EXPECT_TRUE(contains(unknown, "TESSERA_ISA: unknown instruction set 'sse4'; it is avx2 or avx512")) << unknown.output;
  EXPECT_FALSE(std::filesystem::exists(run_path(1)));
  ASSERT_EQ(run_program(train_arguments(), {"TESSERA_ISA=avx2", "TESSERA_KILL_AT=step:3"}).exit_code, 128 + 9);
  EXPECT_EQ(parse_json(read_bytes(run_path(1) + "/env.json"), "env.json").at("kernel_isa").as_string(), "avx2");
  if (!__builtin_cpu_supports("avx512bw")) return;
  const Outcome wider = run_program({"resume", run_path(1)}, {"TESSERA_ISA=avx512"});
  EXPECT_TRUE(contains(wider, "kernel_isa was \"avx2\", is \"avx512\"")) << wider.output;
}

}  // namespace
}  // namespace tessera::testing

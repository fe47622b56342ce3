// A clock's choice is recorded before it is used: a run killed inside the timing and its replay end with the same bytes.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {
namespace {

// Convolutions large enough to be timed.
constexpr const char* kExperiment = R"(
version: 1
name: timed
seed: 3
threads: {compute: 2, loader: 1}
data: {name: glyphs, count: 96, test_count: 32, batch: 32, val: 0}
model:
  name: layers
  layers:
    - {conv2d: {out: 16, kernel: 3, stride: 2, padding: 1, bias: false, name: conv1}}
    - relu
    - {conv2d: {out: 32, kernel: 3, padding: 1, name: conv2}}
    - relu
    - global_avg_pool
    - {linear: {out: 10, name: fc}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
stages: [{name: dense, train: 3e}]
checkpoint: {every: 2s}
log_every: 1
)";

std::string last_model(const std::string& run) {
  const std::string checkpoint = newest_checkpoint(run);
  return read_bytes(checkpoint + "/model.safetensors") + read_bytes(checkpoint + "/optimizer.safetensors");
}

Value decisions_of(const std::string& run) {
  return parse_json(read_bytes(run + "/decisions.json"), "decisions.json").at("decisions");
}

class Decisions : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "timed.yaml", kExperiment); }

  std::string train(const std::string& runs, const std::vector<std::string>& more = {}) {
    const Outcome outcome = start(runs, more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return folder_ / (runs + "/timed/1");
  }
  Outcome start(const std::string& runs, const std::vector<std::string>& more, const std::vector<std::string>& environment = {}) {
    return run_program(joined({"train", folder_ / "timed.yaml", "--runs", folder_ / runs}, more), environment);
  }

  TemporaryFolder folder_;
};

TEST_F(Decisions, KilledInsideTheTimingAndReplayedGivesTheSameBytes) {
  const Outcome killed = start("killed", {}, {"TESSERA_KILL_AT=timing:2"});
  ASSERT_EQ(killed.exit_code, 128 + 9) << killed.output;
  const std::string run = folder_ / "killed/timed/1";
  EXPECT_EQ(decisions_of(run).as_map().size(), 1u);  // the second was measured but not recorded
  const Outcome resumed = run_program({"resume", run});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_GE(decisions_of(run).as_map().size(), 3u);

  const std::string replay = train("replay", {"--decisions", run + "/decisions.json"});
  EXPECT_TRUE(last_model(replay) == last_model(run));
  EXPECT_TRUE(read_bytes(replay + "/metrics.jsonl") == read_bytes(run + "/metrics.jsonl"));
  EXPECT_TRUE(read_bytes(replay + "/decisions.json") == read_bytes(run + "/decisions.json"));
}

// Without recorded choices a plan counts the way that needs most memory for each convolution.
TEST_F(Decisions, APlanCountsTheMemoryOfGivenChoices) {
  Value plain = decisions_of(train("first"));
  for (Value::Entry& entry : plain.as_map()) entry.value = "nhwc";
  Value file = Value::map();
  file.set("version", 1);
  file.set("decisions", plain);
  write_bytes(folder_ / "plain.json", to_json(file));
  const auto peak = [&](const std::vector<std::string>& more) {
    const Outcome told = run_program(joined({"plan", folder_ / "timed.yaml", "--json"}, more));
    EXPECT_EQ(told.exit_code, 0) << told.output;
    return parse_json(told.output, "plan").at("stages").as_list().at(0).at("memory").at("peak").as_int();
  };
  EXPECT_LT(peak({"--decisions", folder_ / "plain.json"}), peak({}));
}

// Each choice differs from the clock's, so that the bytes and the file show whether it is obeyed.
TEST_F(Decisions, AResumedRunNeverMeasuresAgain) {
  const std::string first = train("first");
  Value forged = decisions_of(first);
  for (Value::Entry& entry : forged.as_map()) entry.value = entry.value.as_string() == "nhwc" ? "blocked" : "nhwc";
  Value file = Value::map();
  file.set("version", 1);
  file.set("decisions", forged);
  write_bytes(folder_ / "forged.json", to_json(file));
  const std::string straight = train("straight", {"--decisions", folder_ / "forged.json"});
  EXPECT_EQ(decisions_of(straight), forged);

  const Outcome killed = start("killed", {"--decisions", folder_ / "forged.json"}, {"TESSERA_KILL_AT=step:5"});
  ASSERT_EQ(killed.exit_code, 128 + 9) << killed.output;
  const std::string run = folder_ / "killed/timed/1";
  std::filesystem::remove(run + "/decisions.json");  // the checkpoint holds the choices too
  const Outcome resumed = run_program({"resume", run});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("choices that the checkpoint lacks are measured again"), std::string::npos) << resumed.output;
  EXPECT_EQ(decisions_of(run), forged);
  EXPECT_TRUE(last_model(run) == last_model(straight));
}

TEST_F(Decisions, ItIsSaidHowManyAreOfUse) {
  const std::string run = train("first");
  const std::size_t count = decisions_of(run).as_map().size();
  const std::vector<std::string> replay{"--decisions", run + "/decisions.json"};
  const Outcome same = start("same", replay);
  expect_in(same.output, str("decisions: ", count, " of ", count, " recorded choices are used so far, 0 were measured"));
  const Outcome other = start("other", joined(replay, {"data.batch=48"}));
  expect_in(other.output, str("decisions: 0 of ", count, " recorded choices are used so far, "));
  expect_in(other.output, "none of the recorded choices was asked for");
}

TEST_F(Decisions, DeterministicMeasuresNothing) {
  const std::string one = train("one", {"deterministic=true"});
  EXPECT_TRUE(decisions_of(one).as_map().empty());
  EXPECT_TRUE(last_model(one) == last_model(train("two", {"deterministic=true"})));
}

// The times that keep or veto a factored layer are decisions too, and appear in the report.
class VetoDecisions : public Decisions {
 protected:
  static constexpr const char* kFactorise =
      "stages=[{name: dense, train: 2s}, "
      "{name: tucker, factorise: {layers: conv2, ranks: {out: 2, in: 2}, keep_for: {batch: 8}}}]";

  static std::string report_of(const std::string& run) {
    return read_bytes(run + "/layers.csv") + read_bytes(run + "/report.md") + last_weights(run);
  }
  static std::string last_weights(const std::string& run) { return read_bytes(newest_checkpoint(run) + "/model.safetensors"); }
  static std::size_t count_of(const Value& decisions, const std::string& start) {
    std::size_t count = 0;
    for (const Value::Entry& entry : decisions.as_map()) count += entry.key.starts_with(start);
    return count;
  }
};

TEST_F(VetoDecisions, KilledInsideThemARunEndsAsItsReplay) {
  const std::vector<std::string> always{kFactorise, "stages[1].factorise.keep=always"};
  const std::size_t count = decisions_of(train("count", always)).as_map().size();
  for (const std::size_t last : {count - 1, count}) {  // the layer's and the network's, or one that the network's had to wait for
    const std::string runs = str("killed", last);
    const Outcome killed = start(runs, always, {str("TESSERA_KILL_AT=timing:", last)});
    ASSERT_EQ(killed.exit_code, 128 + 9) << killed.output;
    const std::string run = folder_ / (runs + "/timed/1");
    EXPECT_EQ(decisions_of(run).as_map().size(), last - 1);
    const Outcome resumed = run_program({"resume", run});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
    EXPECT_EQ(count_of(decisions_of(run), "keep.layer "), 1u);
    EXPECT_EQ(count_of(decisions_of(run), "keep.network "), 1u);
    EXPECT_NE(to_json(decisions_of(run)).find(" batch 8, folded inference, "), std::string::npos) << to_json(decisions_of(run));
    const std::string replay = train(str("replay", last), joined(always, {"--decisions", run + "/decisions.json"}));
    EXPECT_TRUE(report_of(replay) == report_of(run)) << read_bytes(replay + "/layers.csv") << read_bytes(run + "/layers.csv");
  }
}

TEST_F(VetoDecisions, ReplayedTheyDecide) {
  const std::string measured = train("measured", {kFactorise, "stages[1].factorise.keep=always"});
  for (const std::string word : {"faster", "not-faster"}) {
    Value forged = decisions_of(measured);
    for (Value::Entry& entry : forged.as_map()) {
      if (entry.key.starts_with("keep.")) entry.value = word + " dense_ms 2 compressed_ms 1 ratio 2 low 1.5 high 2.5";
    }
    Value file = Value::map();
    file.set("version", 1);
    file.set("decisions", forged);
    write_bytes(folder_ / "forged.json", to_json(file));
    const std::string run = train(word, {kFactorise, "deterministic=true", "--decisions", folder_ / "forged.json"});
    const std::string layers = read_bytes(run + "/layers.csv");
    EXPECT_NE(layers.find(word == "faster" ? ",2,1,2,1.5,2.5,true,1,factored,\n"
                                           : ",2,1,2,1.5,2.5,false,,dense,\"not faster at batch "),
              std::string::npos)
        << layers;
  }
}

TEST_F(VetoDecisions, WithoutAClockTheyAreBadInputBeforeTheFirstStep) {
  const Outcome refused = start("runs", {kFactorise, "deterministic=true"});
  expect_outcome(
      refused, 2,
      "stages[1].factorise.keep: faster is decided by a clock, which deterministic: true forbids; replay the choices "
      "of a run that kept layers so, at batch 8, folded inference, 2 threads, with train --decisions FILE, or set keep: always");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(VetoDecisions, ThoseOfAnotherBatchAreBadInputBeforeTheFirstStepToo) {
  const std::string text = R"({"version": 1, "decisions": {"keep.layer x batch 16, folded inference, 2 threads":
                              "faster dense_ms 2 compressed_ms 1 ratio 2 low 1.5 high 2.5"}})";
  write_bytes(folder_ / "other.json", text);
  expect_outcome(start("runs", {kFactorise, "deterministic=true", "--decisions", folder_ / "other.json"}), 2,
                 "kept layers so, at batch 8, folded inference, 2 threads, with train --decisions FILE");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

// A fork knows only the choices that its checkpoint holds.
TEST_F(VetoDecisions, AForkThatLacksThemIsRefusedBeforeItHasAFolder) {
  const std::string run = train("runs", {kFactorise});
  const std::vector<std::string> fork{"fork", run, "--runs", folder_ / "forks", "--at"};
  expect_outcome(
      run_program(joined(fork, {"dense", "deterministic=true"})), 2,
      "fork: stages[1].factorise.keep: faster is decided by a clock, which deterministic: true forbids; replay the "
      "choices of a run that kept layers so, at batch 8, folded inference, 2 threads, with train --decisions FILE, or set "
      "keep: always");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "forks"));
  const Outcome told = run_program(joined(fork, {"dense", "deterministic=true", "stages[1].factorise.keep=always"}));
  EXPECT_EQ(told.exit_code, 0) << told.output;
}

// Those that its checkpoint holds may all be of stages before.
TEST_F(VetoDecisions, ThoseOfAnotherLayerAreNoneForAFork) {
  const std::string stages =
      "stages=[{name: dense, train: 2s}, {name: one, factorise: {layers: conv2, ranks: {out: 2, in: 2}, keep_for: {batch: 8}}}, "
      "{name: two, factorise: {layers: fc, format: svd, ranks: {rank: 2}, keep_for: {batch: 8}}}]";
  const std::string run = train("runs", {stages});
  const auto fork = [&](const std::string& parent) {
    return run_program({"fork", parent, "--runs", folder_ / "forks", "--at", "one", "deterministic=true"});
  };
  expect_outcome(fork(run), 2,
                 "fork: stages[2].factorise.keep: faster is decided by a clock, which deterministic: true forbids, and no choice "
                 "for layer 'fc' at batch 8, folded inference, 2 threads is recorded; replay the choices of a run that has one "
                 "with train --decisions FILE, or set keep: always");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "forks"));
  const Outcome replayed = fork(train("replayed", {stages, "--decisions", run + "/decisions.json"}));
  EXPECT_EQ(replayed.exit_code, 0) << replayed.output;
}

// Of a layer that stays dense by its ranks no clock is asked. Ranks by latency are not known before the pass.
TEST_F(VetoDecisions, AForkIsNotRefusedForLayersThatNoClockIsAskedAbout) {
  for (const char* const rule : {"ranks: {energy: 0.9999999}", "ranks: {latency: {speedup: 100}}"}) {
    SCOPED_TRACE(rule);
    const std::string stages =
        str("stages=[{name: dense, train: 2s}, {name: one, factorise: {layers: conv2, ranks: {out: 2, in: 2}, keep_for: {batch: "
            "8}}}, {name: two, factorise: {layers: fc, format: svd, ",
            rule, ", keep_for: {batch: 8}}}]");
    const std::string run = train("runs", {stages});
    const std::string replayed = train("replayed", {stages, "--decisions", run + "/decisions.json"});
    const Outcome fork = run_program({"fork", replayed, "--runs", folder_ / "forks", "--at", "one", "deterministic=true"});
    EXPECT_EQ(fork.exit_code, 0) << fork.output;
    for (const char* const runs : {"runs", "replayed", "forks"}) std::filesystem::remove_all(folder_ / runs);
  }
}

TEST_F(Decisions, AFileThatIsNoneIsBadInputAndLeavesNoRun) {
  write_bytes(folder_ / "bad.json", "{\"version\": 2, \"decisions\": {}}");
  expect_outcome(start("bad", {"--decisions", folder_ / "bad.json"}), 2,
                 "bad.json: not a decisions.json of a run: decisions: version is 2; this program reads 1");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad"));
  expect_outcome(run_program({"plan", folder_ / "timed.yaml", "--decisions", folder_ / "bad.json"}), 2,
                 "bad.json: not a decisions.json of a run");
}

}  // namespace
}  // namespace tessera::testing

// ADMM in whole runs: train, constrain the weights towards low rank, factorise at the ranks settled before, fine-tune. The runs
// are killed in every stage and resumed. Also checks what their files and refusals say.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "core/config/value.h"
#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/held_experiment.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

constexpr const char* kStages = R"(
threads: {compute: 2, loader: 0}
deterministic: true
checkpoint: {every: 6s, keep: 2, async: false}
stages:
  - {name: dense, train: 4e}
  - name: held
    train: 4e
    optimizer: {momentum: 0.5}
    admm: {layers: conv2, format: tucker2, ranks: {out: 6, in: 6}, keep: always, rho: 1, update: 13s}
  - {name: factored, factorise: {from: held}}
  - {name: tuned, train: 8s}
)";

class AdmmRuns : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "held.yaml", held_experiment(kStages)); }

  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/held/1"); }
  std::vector<std::string> train(const std::string& runs, const std::vector<std::string>& more = {}) const {
    return joined({"train", folder_ / "held.yaml", "--runs", folder_ / runs}, more);
  }
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }

  // The rows that the ADMM hook added to metrics.jsonl.
  static std::vector<Value> admm_rows(const std::string& run) {
    std::vector<Value> rows;
    for (const std::string& line : split(read_bytes(run + "/metrics.jsonl"), '\n')) {
      if (line.empty()) continue;
      const Value row = parse_json(line, "metrics.jsonl");
      if (row.find("admm") != nullptr) rows.push_back(row);
    }
    return rows;
  }

  TemporaryFolder folder_;
};

TEST_F(AdmmRuns, WeightsBecomeLowRankAndAreFactorisedAtTheirRanks) {
  const Outcome outcome = run_program(train("runs"));
  expect_done(outcome);
  expect_in(outcome.output, "held: 1 of 1 matched layers constrained");
  expect_in(outcome.output, "factored: 1 of 1 matched layers factored");
  expect_in(outcome.output, "|W - Z| ");
  expect_in(outcome.output, " % of the time)");
  const std::vector<Value> rows = admm_rows(run_in("runs"));
  ASSERT_EQ(rows.size(), 8u);  // over 104 steps
  EXPECT_EQ(rows.front().at("stage").as_string(), "held");
  EXPECT_EQ(rows.front().at("step").as_int(), 104 + 1 + 13);
  EXPECT_EQ(rows.front().at("admm").at("layer").as_string(), "conv2");
  EXPECT_GT(rows.front().at("admm").at("relative").as_double(), 0.3);
  EXPECT_LT(rows.back().at("admm").at("relative").as_double(), 0.05);

  const std::string layers = read_bytes(run_in("runs") + "/layers.csv");
  expect_in(layers, "held,conv2,conv2d,tucker2_conv2d,tucker2,out 6 in 6,out 6 in 6,");
  expect_in(layers, "constrained");
  expect_in(layers, "factored,conv2,conv2d,tucker2_conv2d,tucker2,from held,out 6 in 6,");
  // The error of decomposing each layer, which becomes small once ADMM has pulled the weights towards low rank.
  for (const std::string& line : split(layers, '\n')) {
    const std::vector<std::string> cells = split(line, ',');
    if (line.starts_with("held,")) {
      EXPECT_GT(std::stod(cells.at(7)), 0.5) << line;
    } else if (line.starts_with("factored,")) {
      EXPECT_LT(std::stod(cells.at(7)), 0.05) << line;
    }
  }
}

TEST_F(AdmmRuns, KilledAndResumedTheyEndWithTheSameBytes) {
  expect_done(run_program(train("straight")));
  std::vector<std::string> next = train("killed");
  for (const char* place :
       {"step:9", "admm:1", "step:107", "step:118", "save:159", "save:183", "step:205", "factorise:2", "step:214"}) {
    const Outcome killed = run_program(next, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << place << ": " << killed.output;
    next = {"resume", run_in("killed")};
  }
  expect_done(run_program(next));
  EXPECT_TRUE(result_of(run_in("killed")) == result_of(run_in("straight")));
}

// conv2 has 4608 weights.
TEST_F(AdmmRuns, WeightsBecomeSparseAndArePrunedToTheirLargest) {
  constexpr const char* kSparse =
      "stages=[{name: dense, train: 4e}, {name: held, train: 4e, optimizer: {momentum: 0.5}, admm: {layers: conv2, "
      "sparsity: 0.8, rho: 1, update: 13s}}, {name: pruned, train: 8s, prune: {layers: conv2, sparsity: {target: 0.8, "
      "schedule: one_shot}}}]";
  expect_done(run_program(train("straight", {kSparse})));
  const std::vector<Value> rows = admm_rows(run_in("straight"));
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(rows.front().at("step").as_int(), 104 + 13) << "no pass counts as a step";
  EXPECT_GT(rows.front().at("admm").at("relative").as_double(), 0.1);
  EXPECT_LT(rows.back().at("admm").at("relative").as_double(), 0.05);
  const std::string file = newest_checkpoint(run_in("straight")) + "/model.safetensors";
  const std::vector<float> weights = decode_safetensors(read_bytes(file), file).tensors.at("conv2.weight").to_vector<float>();
  EXPECT_EQ(std::ranges::count_if(weights, [](float weight) { return weight != 0; }), 922);

  std::vector<std::string> next = train("killed", {kSparse});
  for (const char* place : {"step:9", "step:118", "step:183", "step:210"}) {
    const Outcome killed = run_program(next, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << place << ": " << killed.output;
    next = {"resume", run_in("killed")};
  }
  expect_done(run_program(next));
  EXPECT_TRUE(tensors_of(run_in("killed")) == tensors_of(run_in("straight")));
  expect_outcome(run_program(train("none", {"stages[1].admm={layers: conv9, sparsity: 0.8}", "~stages[2]"})), 2,
                 "stages[1].admm.layers: ");
  expect_outcome(run_program(train("none", {"stages[1].admm.sparsity=0.8"})), 2, "stages[1].admm.");
}

TEST_F(AdmmRuns, ARhoThatChangesIsResumedToo) {
  for (const char* change : {"stages[1].admm.balance={ratio: 2, factor: 1.5}", "stages[1].admm.rho_end=3"}) {
    SCOPED_TRACE(change);
    const std::string name = change[15] == 'b' ? "balance" : "end";
    expect_done(run_program(train(name + "-straight", {change})));
    const Outcome killed = run_program(train(name + "-killed", {change}), {"TESSERA_KILL_AT=save:183"});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
    expect_done(run_program({"resume", run_in(name + "-killed")}));
    EXPECT_TRUE(result_of(run_in(name + "-killed")) == result_of(run_in(name + "-straight")));
    const std::vector<Value> rows = admm_rows(run_in(name + "-straight"));
    EXPECT_NE(rows.front().at("admm").at("rho").as_double(), rows.back().at("admm").at("rho").as_double());
  }
}

TEST_F(AdmmRuns, OtherVerbsKnowThem) {
  expect_outcome(run_program({"validate", folder_ / "held.yaml", "--smoke"}), 0, "held.yaml: ok");
  const Outcome plan = run_program({"plan", folder_ / "held.yaml", "--json"});
  expect_done(plan);
  const Value stages = parse_json(plan.output, "plan").at("stages");
  EXPECT_NEAR(stages.as_list().at(1).at("admm").at("exponent").as_double(), 10.4, 1e-9);
  EXPECT_TRUE(stages.as_list().at(0).at("admm").is_null());
  write_bytes(folder_ / "small.yaml", "version: 1\nmodel: {name: resnet8}\nfactorise: {from: held}\n");
  expect_outcome(run_program({"compress", folder_ / "none.safetensors", "--config", folder_ / "small.yaml"}), 2,
                 "factorise.from: names a stage, and this file has none; give layers and ranks");
}

TEST_F(AdmmRuns, RhoAndRanksAreTheForksToChange) {
  const Outcome killed = run_program(train("runs"), {"TESSERA_KILL_AT=step:156"});
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  const std::string run = run_in("runs");
  expect_outcome(run_program({"resume", run, "stages[1].admm.rho=0.5"}), 2,
                 "resume: stages[1].admm.rho cannot change in a run that has begun; start a new one from it with: tessera fork");
  expect_outcome(run_program({"resume", run, "stages[1].admm.ranks.out=4"}), 2, "stages[1].admm.ranks.out cannot change");
  expect_outcome(run_program({"fork", run, "--at", "153", "--runs", folder_ / "forks", "stages[1].admm.ranks.out=4"}), 2,
                 "the fork is in the middle of this stage");
  const Outcome forked = run_program({"fork", run, "--at", "153", "--runs", folder_ / "forks", "stages[1].admm.rho=0.6"});
  expect_done(forked);
  const std::vector<Value> rows = admm_rows(folder_ / "forks/held/1");
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.back().at("admm").at("rho").as_double(), 0.6);
  expect_done(run_program({"fork", run, "--at", "104", "--runs", folder_ / "ranks", "stages[1].admm.ranks.out=4"}));
  expect_in(read_bytes(folder_ / "ranks/held/1/layers.csv"), "from held,out 4 in 6");
}

TEST_F(AdmmRuns, LayersThatAClockLeavesDenseAreNotHeld) {
  const std::vector<std::string> both{"stages[1].admm.keep=faster", "stages[1].admm.layers=conv*", "stages[1].admm.ranks.in=1",
                                      "stages[1].admm.ranks.out=4", "stages[1].train=13s"};
  // Only a run that replays conv1's verdict times the network without conv1.
  std::string last = "first";
  expect_done(run_program(train(last, joined(both, {"deterministic=false"}))));
  for (const std::string next : {"second", "third"}) {
    write_bytes(folder_ / "chosen.json", without_conv1(run_in(last)));
    expect_done(run_program(train(next, joined(both, {"deterministic=false", "--decisions", folder_ / "chosen.json"}))));
    last = next;
  }
  const std::string layers = read_bytes(run_in(last) + "/layers.csv");
  const auto row = [&](const std::string& begin) {
    for (const std::string& line : split(layers, '\n')) {
      if (line.starts_with(begin)) return line;
    }
    return std::string();
  };
  expect_in(row("held,conv1,"), ",dense,\"not faster at");
  expect_in(row("held,conv2,"), ",constrained,");
  expect_in(row("factored,conv1,"), ",dense,has no ranks from held");
  expect_in(row("factored,conv2,"), ",factored,");

  const Outcome killed =
      run_program(train("killed", joined(both, {"deterministic=false", "--decisions", folder_ / "chosen.json"})),
                  {"TESSERA_KILL_AT=step:113"});
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  const std::string file = newest_checkpoint(run_in("killed")) + "/hook.admm.safetensors";
  const auto held = decode_safetensors(read_bytes(file), file).tensors;
  EXPECT_TRUE(held.contains("z.conv2"));
  EXPECT_EQ(held.size(), 2u);
}

TEST_F(AdmmRuns, MistakesAreNamed) {
  const auto refused = [&](const std::vector<std::string>& overrides, const std::string& part) {
    expect_outcome(run_program(train("none", overrides)), 2, part);
  };
  refused({"stages[2].factorise.from=dense"},
          "stages[2].factorise.from: 'dense' is no earlier stage with an admm block of low rank");
  refused({"stages[2].factorise.format=tt"}, "stages[2].factorise.format: unknown key");
  refused({"~stages[1].train"}, "admm: needs train: weights come to their constraint by training");
  refused({"stages[1].admm.rho_end=1", "stages[1].admm.balance={ratio: 5}"}, "balance: cannot stand beside rho_end");
  refused({"stages[1].admm.update=5e"}, "stages[1].admm.update: 5e is longer than the stage: no update would be made");
  refused({"stages[1].admm.update=4e", "stages[1].admm.rho_end=2"},
          "stages[1].admm.rho_end: has no effect in a stage of one update");
  refused({"stages[3].factorise.from=held"}, "stages[3].factorise.from: ");
  refused({"stages[1].admm.layers=conv9"}, "stages[1].admm.layers: ");
  refused({"stages[1].admm.ranks.out=99"}, "out rank is 99");
}

TEST_F(AdmmRuns, PlanSaysHowFarRhoTakesThem) {
  const Outcome outcome = run_program({"plan", folder_ / "held.yaml"});
  expect_done(outcome);
  // rho times the sum of 104 learning rates of 0.05, divided by 1 - 0.5 for the momentum.
  expect_in(outcome.output, "admm: rho 1, 8 updates, each after 13 steps; the residual falls by a factor of exp(-10.4)");
  const Outcome weak = run_program({"plan", folder_ / "held.yaml", "stages[1].admm.rho=0.1"});
  expect_in(weak.output, "exp(-1.04)");
  expect_in(weak.output, "below 4");
  const Outcome adamw = run_program({"plan", folder_ / "held.yaml", "stages[1].optimizer={name: adamw}"});
  expect_in(adamw.output, "admm: rho 1, 8 updates, each after 13 steps; how far that takes the residual is known for sgd only");
}

}  // namespace
}  // namespace tessera::testing

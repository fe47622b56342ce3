// diff: equal runs compare equal, every kind of difference is named, and damage is reported but does not stop the rest.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/tiny_experiment.h"
#include "train/checkpoint/store.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBlocks = R"(
deterministic: true
data: {name: glyphs, count: 100, test_count: 20, batch: 15, val: 0.1}
optimizer: {name: sgd, lr: 0.05}
stages:
  - {name: dense, train: 6s}
  - {name: tucker, factorise: {keep: always, layers: conv2, ranks: {out: 4, in: 4}}, train: 3s}
checkpoint: {every: 2s, keep: 2, async: false}
log_every: 2
)";

class Diff : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    write_bytes(file(), tiny_experiment(kBlocks, {.threads = "{compute: 0, loader: 0}"}));
    train({});
    train({});
    train({"stages[1].factorise.ranks.in=2", "stages[1].optimizer.lr=0.01"});
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string file() { return *folder_ / "tiny.yaml"; }
  static void train(const std::vector<std::string>& overrides, const std::vector<std::string>& environment = {}, int code = 0) {
    const Outcome outcome = run_program(joined({"train", file(), "--runs", *folder_ / "runs"}, overrides), environment);
    ASSERT_EQ(outcome.exit_code, code) << outcome.output;
  }
  static std::string run(int number) { return *folder_ / ("runs/tiny/" + std::to_string(number)); }
  static std::string copy_of_run(const std::string& name) {
    fs::copy(run(1), *folder_ / name, fs::copy_options::recursive);
    return *folder_ / name;
  }
  static Value json(const std::string& a, const std::string& b, int code) {
    const Outcome outcome = run_program({"diff", a, b, "--json"});
    EXPECT_EQ(outcome.exit_code, code) << outcome.output;
    return parse_json(outcome.output, "output");
  }
  static void expect(const std::string& a, const std::string& b, int code, const std::string& part) {
    expect_outcome(run_program({"diff", a, b}), code, part);
  }
  static const Value& row(const Value& section, const std::string& key) {
    const auto& rows = section.as_list();
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Value& each) { return each.at("key") == Value(key); });
    static const Value none = Value::map();
    EXPECT_NE(found, rows.end()) << key << " is not in " << to_json(section);
    return found == rows.end() ? none : *found;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Diff::folder_ = nullptr;

TEST_F(Diff, RunsOfOneFileAndBuildDifferInNothing) {
  expect(run(1), run(2), 0, "weights: all 8 tensors are equal to the byte\nnext: tessera table " + run(1) + " " + run(2) + "\n");
  const Value answer = json(run(1), run(2), 0);
  EXPECT_FALSE(answer.at("differ").as_bool());
  for (const char* section : {"keys", "environment", "data", "decisions", "layers", "trouble"}) {
    EXPECT_TRUE(answer.at(section).as_list().empty()) << section;
  }
  EXPECT_TRUE(answer.at("metrics").at("first").is_null());
}

TEST_F(Diff, ARunHasTheKeysOfItsFile) {
  expect(run(1), file(), 0, "keys: equal\nonly keys are compared");
  expect(file(), run(1), 0, "next: tessera plan " + file() + "\n");
  expect(file(), run(3), 1, "stages[1].factorise.ranks.in");
  const Value answer = json(file(), run(3), 1);
  EXPECT_FALSE(answer.at("a").at("run").as_bool());
  EXPECT_TRUE(answer.at("weights").is_null());
  EXPECT_TRUE(answer.at("metrics").is_null());
}

TEST_F(Diff, EveryKindOfDifferenceIsNamed) {
  const Value answer = json(run(1), run(3), 1);
  EXPECT_TRUE(answer.at("differ").as_bool());
  EXPECT_EQ(answer.at("keys").as_list().size(), 2u) << to_json(answer.at("keys"));
  EXPECT_EQ(row(answer.at("keys"), "stages[1].factorise.ranks.in").at("b"), Value(2));
  EXPECT_EQ(row(answer.at("keys"), "stages[1].optimizer.lr").at("a"), Value(0.05));
  EXPECT_TRUE(answer.at("environment").as_list().empty());
  EXPECT_TRUE(answer.at("data").as_list().empty());
  row(answer.at("metrics").at("stages"), "tucker:loss");
  EXPECT_TRUE(row(answer.at("layers"), "tucker:conv2:ranks").at("a").as_string().ends_with(" in 4"));
  EXPECT_TRUE(row(answer.at("layers"), "tucker:conv2:ranks").at("b").as_string().ends_with(" in 2"));
  row(answer.at("layers"), "tucker:conv2:relative_error");
  row(answer.at("layers"), "tucker:conv2:macs_after");
}

TEST_F(Diff, MetricsPartAtTheFirstStepOfTheOtherStage) {
  const Value first = json(run(1), run(3), 1).at("metrics").at("first");
  EXPECT_EQ(first.at("stage").as_string(), "tucker");
  EXPECT_EQ(first.at("step").as_int(), 8);
  EXPECT_EQ(row(first.at("values"), "lr").at("b"), Value(0.01));
  expect(run(1), run(3), 1, "  first at step 8, stage tucker (line ");
}

TEST_F(Diff, WeightsAreComparedToTheByte) {
  const Value answer = json(run(1), run(3), 1);
  const auto& differing = answer.at("weights").at("differing").as_list();
  const auto weights_of = [](const std::string& run) {
    return CheckpointStore(real_vfs(), run + "/checkpoints").load_latest().parts.at("model").tensors;
  };
  const auto a = weights_of(run(1));
  const auto b = weights_of(run(3));
  for (const Value& tensor : differing) {
    const std::string& name = tensor.at("name").as_string();
    if (name == "conv2.core") {
      EXPECT_EQ(tensor.at("what").as_string(), "f32 " + std::string("[4, 3, 3, 4], f32 [4, 3, 3, 2]"));
      EXPECT_TRUE(tensor.at("max_abs").is_null());
    } else if (name == "fc.weight") {
      const auto left = a.at(name).to_vector<float>();
      const auto right = b.at(name).to_vector<float>();
      double most = 0;
      for (std::size_t i = 0; i < left.size(); ++i) {
        most = std::max(most, std::abs(static_cast<double>(left[i]) - static_cast<double>(right[i])));
      }
      EXPECT_EQ(tensor.at("max_abs").as_double(), most);
    }
  }
  EXPECT_EQ(differing.size(), 8u);
  expect(run(1), run(3), 1, "weights: 8 of 8 tensors differ, by name the first is conv1.bias:\n");
}

TEST_F(Diff, EnvironmentAndDecisionsCount) {
  const std::string other = copy_of_run("elsewhere");
  Value env = parse_json(read_bytes(other + "/env.json"), "env");
  env.set("host", "another");
  write_bytes(other + "/env.json", to_json(env));
  EXPECT_EQ(run_program({"diff", run(1), other}).exit_code, 0) << "where a run was is no difference";
  env.set("isa", "another");
  write_bytes(other + "/env.json", to_json(env));
  write_bytes(other + "/decisions.json", R"({"version": 1, "decisions": {"conv2d.forward x": "winograd"}})");
  const Value answer = json(run(1), other, 1);
  EXPECT_EQ(row(answer.at("environment"), "isa").at("b"), Value("another"));
  EXPECT_TRUE(row(answer.at("decisions"), "conv2d.forward x").at("a").is_null());
  EXPECT_EQ(row(answer.at("decisions"), "conv2d.forward x").at("b"), Value("winograd"));
}

// Two runs that were both timed: the clock's figures differ, the decisions do not.
TEST_F(Diff, WhatAClockReadIsNoDifference) {
  const auto measured = [](const std::string& name, const std::string& decision, const std::string& fields) {
    const std::string run = copy_of_run(name);
    write_bytes(run + "/decisions.json", str(R"({"version": 1, "decisions": {"keep.layer x": ")", decision, R"("}})"));
    std::string layers = read_bytes(run + "/layers.csv");
    const std::string untimed = ",,,,,,,,factored,\n";
    const std::size_t at = layers.find(untimed);
    EXPECT_NE(at, std::string::npos) << layers;
    write_bytes(run + "/layers.csv", layers.replace(at, untimed.size(), fields));
    return run;
  };
  const std::string one =
      measured("slow", "not-faster dense_ms 2 compressed_ms 4 ratio 0.5 low 0.4 high 0.6",
               ",2,4,0.5,0.4,0.6,false,0.25,factored,\"not faster at batch 128, inference, 1 threads\"\n");
  const std::string two =
      measured("slower", "not-faster dense_ms 1 compressed_ms 3 ratio 0.33 low 0.3 high 0.4",
               ",1,3,0.33,0.3,0.4,false,0.5,factored,\"not faster at batch 128, inference, 1 threads\"\n");
  EXPECT_EQ(run_program({"diff", one, two}).exit_code, 0);
  const std::string other =
      measured("fast", "faster dense_ms 4 compressed_ms 2 ratio 2 low 1.9 high 2.1", ",4,2,2,1.9,2.1,true,0.25,factored,\n");
  const Value answer = json(one, other, 1);
  EXPECT_EQ(row(answer.at("decisions"), "keep.layer x").at("a"), Value("not-faster"));
  EXPECT_EQ(row(answer.at("decisions"), "keep.layer x").at("b"), Value("faster"));
  ASSERT_EQ(answer.at("layers").as_list().size(), 2u) << to_json(answer.at("layers"));
  EXPECT_EQ(row(answer.at("layers"), "tucker:conv2:faster").at("b"), Value("true"));
  EXPECT_EQ(row(answer.at("layers"), "tucker:conv2:reason").at("b"), Value(""));
}

TEST_F(Diff, AKilledRunIsComparedAsFarAsItGot) {
  train({}, {"TESSERA_KILL_AT=step:5"}, 128 + 9);
  const Value answer = json(run(1), run(4), 1);
  EXPECT_EQ(answer.at("b").at("step").as_int(), 4);
  EXPECT_TRUE(answer.at("keys").as_list().empty());
  EXPECT_TRUE(row(answer.at("layers"), "tucker:conv2:ranks").at("b").is_null());
  const Value& first = answer.at("metrics").at("first");
  EXPECT_EQ(first.at("step").as_int(), 6);
  EXPECT_TRUE(row(first.at("values"), "loss").at("b").is_null());
  EXPECT_TRUE(answer.at("trouble").as_list().empty());
}

TEST_F(Diff, DamageIsSaidAndTheRestCompared) {
  const std::string damaged = copy_of_run("damaged");
  const std::string metrics = read_bytes(damaged + "/metrics.jsonl");
  write_bytes(damaged + "/metrics.jsonl", metrics.substr(0, metrics.size() - 5));
  write_bytes(newest_checkpoint(damaged) + "/model.safetensors", "x");
  write_bytes(damaged + "/layers.csv", "stage,path,rank\ntucker,\"conv2");
  fs::remove(damaged + "/env.json");
  const Value answer = json(run(1), damaged, 1);
  const auto& trouble = answer.at("trouble").as_list();
  ASSERT_EQ(trouble.size(), 4u) << to_json(answer.at("trouble"));
  EXPECT_EQ(trouble[0].as_string(), "b: " + damaged + "/env.json is missing; environments are not compared");
  EXPECT_EQ(trouble[1].as_string(), "b: " + damaged + "/layers.csv:2: a quote is not closed");
  EXPECT_NE(trouble[2].as_string().find("the line has no end; compared up to there"), std::string::npos);
  EXPECT_NE(trouble[3].as_string().find("passed over a damaged checkpoint"), std::string::npos);
  EXPECT_TRUE(answer.at("keys").as_list().empty());
  EXPECT_FALSE(answer.at("weights").is_null());
  EXPECT_TRUE(answer.at("environment").is_null());
  EXPECT_TRUE(answer.at("layers").is_null());
  expect(run(1), damaged, 1, "\nenvironment: not compared\ndata: equal\n");
  expect(run(1), damaged, 1, "\ntrouble: b: ");
}

TEST_F(Diff, BadInputExitsWithTwo) {
  expect(run(1), *folder_ / "none", 2, "diff: no run folder or experiment file ");
  expect(*folder_ / "runs", run(1), 2, "is not a run folder");
  const std::string broken = copy_of_run("broken");
  write_bytes(broken + "/config.resolved.yaml", "version: 1\nname: [");
  expect(run(1), broken, 2, "config.resolved.yaml:");
  EXPECT_EQ(run_program({"diff", run(1)}).exit_code, 2);
  EXPECT_EQ(run_program({"diff", "--help"}).exit_code, 0);
}

}  // namespace
}  // namespace tessera::testing

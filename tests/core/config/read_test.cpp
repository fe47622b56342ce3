#include "core/config/read.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/core/config/blocks.h"

namespace tessera {
namespace {

using namespace test;

std::vector<std::string> problems_of(const Value& value) {
  Experiment experiment;
  std::vector<ConfigProblem> problems;
  read(value, experiment, "", problems);
  std::vector<std::string> texts;
  for (const ConfigProblem& problem : problems) texts.push_back(problem.path + ": " + problem.message);
  return texts;
}

void append(Value& map, std::string key, Mark mark, Value value) {
  Value::Entry entry{std::move(key), std::move(mark), std::move(value)};
  map.as_map().push_back(std::move(entry));
}

using Texts = std::vector<std::string>;

TEST(Read, TakesEveryKindOfKey) {
  const auto experiment = read<Experiment>(json(R"({
    "seed": 7, "precision": "bf16", "crop": [3, 5], "mean": [0.5, 1, 0], "devices": ["cuda", "cpu"],
    "optimizer": {"name": "adamw", "beta1": 0.5, "clip": 1}, "extra": {"free": [1]},
    "stages": [{"name": "a", "train": "20%"}, {"name": "b", "admm": {"ranks": [4, 2]}}]})"));
  EXPECT_EQ(experiment.seed, 7);
  EXPECT_EQ(experiment.precision, "bf16");
  EXPECT_EQ(experiment.crop, (Extent{3, 5}));
  EXPECT_EQ(experiment.mean, (std::vector<double>{0.5, 1, 0}));
  EXPECT_EQ(experiment.devices, (std::vector<std::string>{"cuda", "cpu"}));
  EXPECT_EQ(experiment.optimizer, (Optimizer{Adamw{1e-3, 0.5}, 1.0}));
  EXPECT_EQ(experiment.extra, json(R"({"free": [1]})"));
  ASSERT_EQ(experiment.stages.size(), 2u);
  EXPECT_EQ(experiment.stages[0], (Stage{"a", Duration::percent(20), std::nullopt}));
  EXPECT_EQ(experiment.stages[1].admm, (Admm{"*", {4, 2}, 1e-3}));
}

TEST(Read, LeavesDefaultsWhereKeysAreAbsent) {
  EXPECT_EQ(read<Experiment>(Value::map()), Experiment{});
  EXPECT_EQ(read<Experiment>(Value()), Experiment{});
}

TEST(Read, ListedBlocksStartFromTheirOwnDefaults) {
  const auto experiment = read<Experiment>(json(R"({"stages": [{"name": "a"}]})"));
  EXPECT_EQ(experiment.stages, (std::vector<Stage>{{"a", Duration::epochs(1), std::nullopt}}));
  EXPECT_TRUE(read<Experiment>(json(R"({"stages": []})")).stages.empty());
}

TEST(Read, TakesOneNumberForBothSidesOfAnExtent) {
  EXPECT_EQ(read<Experiment>(json(R"({"crop": 4})")).crop, (Extent{4, 4}));
}

TEST(Read, NamesUnknownKeysWithTheNearest) {
  EXPECT_EQ(problems_of(json(R"({"stages": [{"name": "a"}, {"name": "b", "admm": {"rnaks": [1]}}]})")),
            Texts{"stages[1].admm.rnaks: unknown key; did you mean 'ranks'?"});
  EXPECT_EQ(problems_of(json(R"({"stages": [{"name": "b", "admm": {"zzzzz": [1]}}]})")),
            Texts{"stages[0].admm.zzzzz: unknown key; known: layers ranks rho"});
}

TEST(Read, NamesAnOptionalKeyOnceAmongTheKnown) {
  EXPECT_EQ(problems_of(json(R"({"optimizer": {"clip": 1, "zzzzz": 1}})")),
            Texts{"optimizer.zzzzz: unknown key; known: name lr momentum nesterov clip"});
}

TEST(Read, PointsToTheBlockAKeyBelongsTo) {
  EXPECT_EQ(problems_of(json(R"({"momentum": 0.9})")), Texts{"momentum: unknown key; it belongs under 'optimizer'"});
}

TEST(Read, CollectsEveryProblem) {
  const Texts all = problems_of(json(R"({"sed": 1, "precision": "f23", "crop": 0, "mean": [2],
    "optimizer": {"lr": 0, "nope_nope": 1}, "stages": [{"train": 5}, 3]})"));
  EXPECT_EQ(all.size(), 9u) << testing::PrintToString(all);
}

TEST(Read, SaysWhichKindItExpected) {
  EXPECT_EQ(problems_of(json(R"({"seed": 1.0})")), Texts{"seed: expected an integer, found 1.0"});
  EXPECT_EQ(problems_of(json(R"({"seed": "1"})")), Texts{"seed: expected an integer, found text '1'"});
  EXPECT_EQ(problems_of(json(R"({"seed": null})")), Texts{"seed: expected an integer, found null"});
  EXPECT_EQ(problems_of(json(R"({"precision": 16})")), Texts{"precision: expected text, found 16; write it in quotes"});
  EXPECT_EQ(problems_of(json(R"({"mean": 1})")), Texts{"mean: expected a list, found 1; write it in [ ]"});
  EXPECT_EQ(problems_of(json(R"({"mean": [1, true]})")), Texts{"mean[1]: expected a number, found true"});
  EXPECT_EQ(problems_of(json(R"({"optimizer": "adamw"})")), Texts{"optimizer: expected a block, found text 'adamw'"});
  EXPECT_EQ(problems_of(json(R"({"stages": {}})")), Texts{"stages: expected a list of blocks, found a block"});
  EXPECT_EQ(problems_of(json(R"({"optimizer": {"nesterov": 1}})")),
            Texts{"optimizer.nesterov: expected true or false, found 1"});
  EXPECT_EQ(problems_of(json(R"({"crop": [1, 2, 3]})")),
            Texts{"crop: expected one integer or [height, width], found 3 items"});
  EXPECT_EQ(problems_of(json("[1]")), Texts{": expected a block, found a list"});
}

TEST(Read, RefusesQuotedNumbers) {
  Value quoted = Value::map();
  quoted.set("seed", Value("5").with_quotes());
  EXPECT_EQ(problems_of(quoted), Texts{"seed: expected an integer, found text '5'; a number takes no quotes"});
}

TEST(Read, RefusesNumbersThatAreNotFinite) {
  Value value = Value::map();
  value.set("mean", Value::list({std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(problems_of(value).size(), 2u);
}

TEST(Read, StatesTheValueAndTheLegalRange) {
  EXPECT_EQ(problems_of(json(R"({"seed": -1})")), Texts{"seed: is -1; must be at least 0"});
  EXPECT_EQ(problems_of(json(R"({"mean": [0, 1.5]})")), Texts{"mean[1]: is 1.5; must be in [0, 1]"});
  EXPECT_EQ(problems_of(json(R"({"optimizer": {"lr": 0}})")), Texts{"optimizer.lr: is 0; must be greater than 0"});
  EXPECT_EQ(problems_of(json(R"({"optimizer": {"momentum": 1}})")), Texts{"optimizer.momentum: is 1; must be in [0, 1)"});
}

TEST(Read, NamesTheNearestChoice) {
  EXPECT_EQ(problems_of(json(R"({"precision": "bf61"})")),
            Texts{"precision: 'bf61' is not a choice; did you mean 'bf16'?; choices: f32 tf32 bf16"});
  EXPECT_EQ(problems_of(json(R"({"devices": ["cpu", "tpux"]})")),
            Texts{"devices[1]: 'tpux' is not a choice; choices: cpu cuda"});
}

TEST(Read, ExplainsDurations) {
  EXPECT_EQ(problems_of(json(R"({"stages": [{"name": "a", "train": 10}]})")),
            Texts{"stages[0].train: expected a length of training, found 10; write 10e, 5000s or 20%"});
}

TEST(Read, DoesNotJudgeKeysOfAnUnknownAlternative) {
  EXPECT_EQ(problems_of(json(R"({"optimizer": {"name": "adamv", "beta1": 0.9}})")),
            Texts{"optimizer.name: 'adamv' is not a choice; did you mean 'adamw'?; choices: sgd adamw"});
}

TEST(Read, KeysOfAnotherAlternativeSayWhoseTheyAre) {
  EXPECT_EQ(problems_of(json(R"({"optimizer": {"name": "sgd", "beta1": 0.9}})")),
            Texts{"optimizer.beta1: belongs to name: adamw"});
}

TEST(Read, MissesRequiredKeys) {
  EXPECT_EQ(problems_of(json(R"({"stages": [{}]})")), Texts{"stages[0].name: required key is missing"});
}

TEST(Read, MissesRequiredKeysOfAbsentBlocks) {
  struct Outer {
    Stage stage;
    void fields(Fields& f) { f.add("stage", stage, {}); }
  };
  Outer outer;
  std::vector<ConfigProblem> problems;
  read(Value::map(), outer, "here", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(to_string(problems[0]), "here.stage.name: required key is missing");
}

TEST(Read, ChecksRulesAcrossKeysOnlyOnSoundBlocks) {
  EXPECT_EQ(problems_of(json(R"({"optimizer": {"nesterov": true}})")), Texts{"optimizer.nesterov: needs momentum > 0"});
  EXPECT_EQ(problems_of(json(R"({"optimizer": {"nesterov": true, "momentum": "x"}})")),
            Texts{"optimizer.momentum: expected a number, found text 'x'"});
}

TEST(Read, AMisspelledKeyIsNotMissedAsWell) {
  EXPECT_EQ(problems_of(json(R"({"stages": [{"nmae": "a"}]})")), Texts{"stages[0].nmae: unknown key; did you mean 'name'?"});
  EXPECT_EQ(problems_of(json(R"({"stages": [{"other": "a"}]})")).size(), 2u);
}

TEST(Read, AMisspelledKeyBreaksNoRuleOfItsBlock) {
  EXPECT_EQ(problems_of(json(R"({"optimizer": {"nesterov": true, "momentun": 0.9}})")),
            Texts{"optimizer.momentun: unknown key; did you mean 'momentum'?"});
}

struct Nested {
  Sgd inner;
  void fields(Fields& f) {
    f.add("inner", inner, {.required = true});
    f.require(inner.momentum > 0, "inner", "first rule");
    f.require(inner.nesterov, "inner", "second rule");
  }
};

TEST(Read, AnAbsentRequiredBlockIsMissedAndNothingElse) {
  std::vector<ConfigProblem> problems;
  Nested nested;
  read(json("{}"), nested, "", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(to_string(problems[0]), "x.json: inner: required key is missing");
}

TEST(Read, EveryBrokenRuleIsReported) {
  std::vector<ConfigProblem> problems;
  Nested nested;
  read(json(R"({"inner": {}})"), nested, "", problems);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].message, "first rule");
  EXPECT_EQ(problems[1].message, "second rule");
}

TEST(Read, EmptiesANullableKeyThatIsNullAndLeavesAnAbsentOne) {
  Measured measured{.loss = 0.5, .optimizer = Sgd{}, .passes = {{Admm{}}}};
  std::vector<ConfigProblem> problems;
  read(json(R"({"loss": null, "optimizer": null})"), measured, "", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(measured, (Measured{.passes = {{Admm{}}}}));
}

TEST(Read, RefusesNullForAnOptionalThatIsNotNullable) {
  Measured measured;
  std::vector<ConfigProblem> problems;
  read(json(R"({"note": null})"), measured, "", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "note");
}

TEST(Read, JudgesAComputedKeyAndDropsIt) {
  Measured measured;
  std::vector<ConfigProblem> problems;
  read(json(R"({"samples": 4, "right": 3, "accuracy": 0.25})"), measured, "", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(measured.accuracy(), 0.75);
  read(json(R"({"accuracy": 2})"), measured, "", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "accuracy");
}

TEST(Read, RefusesRepeatedKeys) {
  Value value = Value::map();
  append(value, "seed", {"x.yaml", 1, 1}, Value(1));
  append(value, "seed", {"x.yaml", 2, 1}, Value(2));
  EXPECT_EQ(problems_of(value), Texts{"seed: repeated key; first at x.yaml:1:1"});
}

TEST(Read, ThrowsAllProblemsInOrderOfTheFile) {
  Value value = Value::map();
  append(value, "sed", {"x.yaml", 1, 1}, Value(1));
  append(value, "precision", {"x.yaml", 3, 1}, Value("f23").with_mark({"x.yaml", 3, 12}));
  append(value, "crop", {"x.yaml", 2, 1}, Value(0).with_mark({"x.yaml", 2, 7}));
  try {
    read<Experiment>(value);
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "x.yaml:1:1: sed: unknown key; did you mean 'seed'?\n"
                 "x.yaml:2:7: crop: is 0; must be at least 1\n"
                 "x.yaml:3:12: precision: 'f23' is not a choice; did you mean 'f32'?; choices: f32 tf32 bf16");
  }
}

}  // namespace
}  // namespace tessera

#include "train/experiment.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"

namespace tessera {
namespace {

constexpr const char* kHead = "version: 1\nname: x\ndata: {name: glyphs, batch: 64}\nmodel: {name: lenet5}\n";
constexpr const char* kStages = "stages:\n  - {name: a, train: 1e}\n  - {name: b, train: 2e}\n";

Experiment parse(const std::string& text) { return parse_experiment(parse_yaml(text, "x.yaml")); }

std::string error_of(const std::string& text) {
  return message_of<ConfigError>([&] { parse(text); });
}

class ExperimentFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    std::ofstream(folder_.path() / "x.yaml") << text;
    return (folder_.path() / "x.yaml").string();
  }
  TemporaryFolder folder_;
};

TEST(Experiment, DefaultsStandWhereTheFileIsSilent) {
  const ExperimentConfig config = parse(str(kHead, kStages)).config;
  EXPECT_EQ(config.seed, 0);
  EXPECT_EQ(config.device, "auto");
  EXPECT_EQ(config.checkpoint.keep, 3);
  EXPECT_EQ(config.checkpoint.every, Duration::epochs(1));
  EXPECT_EQ(config.report.latency.batch, (std::vector<std::int64_t>{1, 32}));
  EXPECT_FALSE(config.training.ema.has_value());
  ASSERT_EQ(config.stages.size(), 2u);
  EXPECT_EQ(config.stages[1].train, Duration::epochs(2));
  EXPECT_DOUBLE_EQ(config.stages[1].training.optimizer.lr(), 0.1);
}

TEST(Experiment, AStageChangesOneKeyAndKeepsTheOthers) {
  const auto config = parse(str(kHead, "optimizer: {name: sgd, lr: 0.5, momentum: 0.7}\nclip_norm: 2\n",
                                "stages:\n  - {name: a, train: 1e, optimizer: {lr: 0.25}}\n  - {name: b, train: 1e}\n"))
                          .config;
  const auto& changed = std::get<SgdConfig>(config.stages[0].training.optimizer.form);
  EXPECT_DOUBLE_EQ(changed.lr, 0.25);
  EXPECT_DOUBLE_EQ(changed.momentum, 0.7);
  EXPECT_EQ(config.stages[0].training.clip_norm, 2.0);
  EXPECT_DOUBLE_EQ(config.stages[1].training.optimizer.lr(), 0.5);
}

TEST(Experiment, AnotherNameReplacesTheBlock) {
  const auto config = parse(str(kHead, "optimizer: {name: sgd, lr: 0.5, momentum: 0.7}\n",
                                "stages:\n  - {name: a, train: 1e, optimizer: {name: adamw}}\n"))
                          .config;
  ASSERT_TRUE(std::holds_alternative<AdamWConfig>(config.stages[0].training.optimizer.form));
  EXPECT_DOUBLE_EQ(config.stages[0].training.optimizer.lr(), AdamWConfig{}.lr);
  EXPECT_TRUE(std::holds_alternative<SgdConfig>(config.training.optimizer.form));
}

TEST(Experiment, TheResolvedFileLoadsToTheSameConfig) {
  const Experiment first = parse(str(kHead, "optimizer: {name: adamw, lr: 0.001}\nema: {decay: 0.9}\nmicro_batch: 16\n",
                                     "stages:\n  - {name: a, train: 50s, optimizer: {name: sgd, lr: 0.25}}\n",
                                     "  - {name: b, factorise: {layers: conv2, ranks: {energy: 0.9}}}\n",
                                     "  - {name: c, factorise: {layers: conv2, ranks: [{layers: \"*2\", out: 3, in: 2}]}}\n"));
  const Experiment again = parse(to_yaml(first.resolved));
  EXPECT_EQ(to_yaml(again.resolved), to_yaml(first.resolved));
  EXPECT_EQ(again.resolved, first.resolved);
  EXPECT_DOUBLE_EQ(again.config.stages[0].training.optimizer.lr(), 0.25);
  EXPECT_EQ(again.config.stages[1].training.micro_batch, 16);
  EXPECT_EQ(again.config.stages[2].factorise->rank_rules.at(0).ranks.explicit_ranks.at(0).value, 3);
}

TEST(Experiment, AStoredConfigMayHaveOtherModelsKeysWhereTheyAreEmpty) {
  const auto stored = [](const std::string& model) {
    return str("version: 1\nname: x\ndata: {name: glyphs}\nmodel: {", model, "}\n", kStages);
  };
  const std::string empty = R"(, hidden: [], shortcut: "", layers: null)";
  for (const char* model : {"name: lenet5", "name: mlp", "name: resnet20"}) {
    EXPECT_EQ(parse(stored(model + empty)).resolved, parse(stored(model)).resolved) << model;
  }
  for (const char* set : {"hidden: [5]", "shortcut: projection", "layers: [relu]"}) {
    const std::string key =
        str("model.", std::string_view(set).substr(0, std::string_view(set).find(':')), ": belongs to name: ");
    EXPECT_NE(error_of(stored(str("name: lenet5, ", set))).find(key), std::string::npos) << set;
  }
  EXPECT_EQ(parse(stored(R"(name: mlp, hidden: [5], shortcut: "")")).resolved.at("model").at("hidden"), Value::list({5}));
}

TEST(Experiment, AFaultThatStagesInheritIsReportedOnce) {
  EXPECT_EQ(error_of(str(kHead, "optimizer: {name: sgd, lr: -1}\n", kStages)),
            "x.yaml:5:28: optimizer.lr: is -1; must be at least 0");
}

TEST(Experiment, WhatLetsBestsGoNeedsBests) {
  EXPECT_EQ(error_of(str(kHead, "checkpoint: {best: false, keep_best: run}\n", kStages)),
            "x.yaml:5:38: checkpoint.keep_best: needs best: true, which pins the checkpoints that it lets go");
}

TEST(Experiment, AFaultOfAStageIsItsOwn) {
  const std::string error =
      error_of(str(kHead, "optimizer: {name: sgd, momentun: 1}\n", "stages:\n  - {name: a, train: 1e, optimizer: {lr: x}}\n"));
  EXPECT_EQ(error,
            "x.yaml:5:24: optimizer.momentun: unknown key; did you mean 'momentum'?\n"
            "x.yaml:7:42: stages[0].optimizer.lr: expected a number, found text 'x'");
}

TEST(Experiment, StagesNeedNamesOfTheirOwnAndSomethingToDo) {
  EXPECT_EQ(error_of(str(kHead, "stages:\n  - {name: a, train: 1e}\n  - {name: a, train: 1e}\n")),
            "x.yaml:6:3: stages: two stages are named 'a'; names must differ");
  EXPECT_EQ(error_of(str(kHead, "stages: []\n")), "x.yaml:5:9: stages: is empty; a run needs a stage");
  EXPECT_NE(error_of(kHead).find("stages: required key is missing"), std::string::npos) << error_of(kHead);
  EXPECT_EQ(error_of(str(kHead, "stages: [{name: a}]\n")),
            "x.yaml:5:10: stages[0]: a stage needs train, factorise, shrink or sparsify, or several of them");
}

// `length` requires `phase: decode`. `shrink` accepts neither.
TEST(Experiment, SequencesHaveALengthInDecode) {
  const auto error = [](const std::string& block) {
    return error_of(str(kHead, "stages: [{name: a, train: 1e, ", block, "}]\n"));
  };
  EXPECT_NE(error("factorise: {layers: '*', ranks: {macs: 0.5}, keep_for: {length: 9}}")
                .find("stages[0].factorise.keep_for.length: has no effect without phase: decode"),
            std::string::npos);
  EXPECT_NE(error("shrink: {keep_for: {phase: decode}}").find("stages[0].shrink.keep_for.phase: 'decode' is not a choice"),
            std::string::npos)
      << error("shrink: {keep_for: {phase: decode}}");
  EXPECT_NE(error("shrink: {keep_for: {length: 9}}").find("stages[0].shrink.keep_for.length: unknown key"), std::string::npos);
}

TEST(Experiment, FaultyLayersAreReportedTogetherWithTheRest) {
  EXPECT_EQ(
      error_of(str("version: 1\nname: x\nsead: 1\ndata: {name: glyphs}\nmodel:\n  name: layers\n  layers:\n",
                   "    - {conv2d: {out: 8, kernal: 3, groups: 2}}\n    - rellu\n    - {batch_norm: {chanels: 8}}\n",
                   "    - global_avg_pool\n", kStages)),
      "x.yaml:3:1: sead: unknown key; did you mean 'seed'?\n"
      "x.yaml:8:25: model.layers[0].conv2d.kernal: unknown key; did you mean 'kernel'?\n"
      "x.yaml:9:7: model.layers[1]: unknown layer 'rellu'; did you mean 'relu'?; known: avg_pool2d basic_block batch_norm "
      "bottleneck class_token conv2d cp_conv2d dropout embedding flatten gelu global_avg_pool identity layer_norm linear "
      "max_pool2d "
      "patches positions relu residual rms_norm segments self_attention sequential sigmoid silu sparse_conv2d sparse_linear "
      "spatial_svd_conv2d svd_conv2d svd_linear swiglu tanh tied_linear token_pool transformer_block tt_conv2d tt_embedding "
      "tt_garipov_conv2d tt_linear tucker2_conv2d\n"
      "x.yaml:10:21: model.layers[2].batch_norm.chanels: unknown key; did you mean 'channels'?");
}

// A file of 1 MiB can hold 30,000 stages that each inherit 60,000 values, more than any memory holds.
TEST(Experiment, LimitsWhatStagesRepeat) {
  std::string text(kHead);
  text += "optimizer: {betas: [0";
  for (int i = 0; i < 999; ++i) text += ",0";
  text += "]}\nstages: [{name: a}";
  for (int i = 0; i < 99; ++i) text += ",{}";
  const std::string error = error_of(text + "]");
  EXPECT_NE(error.find(": stages: 100 stages inherit 1002 values each; together at most 100000"), std::string::npos) << error;
}

TEST(Experiment, MicroBatchesAreEqualSharesOfTheBatch) {
  EXPECT_EQ(error_of(str(kHead, "micro_batch: 64\n", kStages)), "");
  EXPECT_EQ(error_of(str(kHead, "micro_batch: 24\n", kStages)),
            "x.yaml:5:14: micro_batch: is 24; must divide data.batch, which is 64");
  EXPECT_EQ(error_of(str(kHead, "stages:\n  - {name: a, train: 1e, micro_batch: 128}\n")),
            "x.yaml:6:39: stages[0].micro_batch: is 128; must divide data.batch, which is 64");
}

TEST_F(ExperimentFile, ARelativeDataRootIsRelativeToTheFile) {
  const std::string path =
      write(str("version: 1\nname: x\ndata: {name: mnist, root: ../sets/mnist}\nmodel: {name: lenet5}\n", kStages));
  const auto expected = (folder_.path() / "../sets/mnist").lexically_normal().string();
  EXPECT_EQ(load_experiment(path).config.data.root, expected);
  const std::vector<std::string> overrides{"data.root=/data/mnist"};
  EXPECT_EQ(load_experiment(path, overrides).config.data.root, "/data/mnist");
}

TEST_F(ExperimentFile, OverridesWinAndTheirFaultsAreReportedOnce) {
  const std::string path = write(str(kHead, kStages));
  const std::vector<std::string> overrides{"seed=7", "stages[1].train=3e"};
  const ExperimentConfig config = load_experiment(path, overrides).config;
  EXPECT_EQ(config.seed, 7);
  EXPECT_EQ(config.stages[1].train, Duration::epochs(3));
  const std::vector<std::string> bad{"optimizer={name: sgd, lr: -1}"};
  try {
    load_experiment(path, bad);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "command line: optimizer.lr: is -1; must be at least 0");
  }
}

TEST_F(ExperimentFile, RepeatedKeysAreReportedBesideTheOtherFaults) {
  const std::string path = write(
      "version: 1\nname: x\nname: y\nsead: 1\n"
      "model: {name: lenet5}\nstages: [{name: a, train: 1e}]\ndata: {batch: 010}\n");
  try {
    load_experiment(path);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), str(path, ":3:1: name: repeated key; first at ", path, ":2:1\n", path,
                                ":4:1: sead: unknown key; did you mean 'seed'?\n", path,
                                ":7:15: '010' has a leading zero; write 10 for the number or '010' in quotes "
                                "for the text"));
  }
}

TEST_F(ExperimentFile, AMissingFileIsTheUsersMistake) {
  EXPECT_THROW(load_experiment((folder_.path() / "none.yaml").string()), ConfigError);
}

TEST(Experiment, StepsOfAnEpochCountTheRestWhereItIsKept) {
  DataConfig data;
  data.batch = 32;
  EXPECT_EQ(steps_per_epoch(data, 100), 3);
  data.drop_last = false;
  EXPECT_EQ(steps_per_epoch(data, 100), 4);
  EXPECT_EQ(steps_per_epoch(data, 96), 3);
}

TEST(Experiment, ALengthOfAStageIsInSteps) {
  const ExperimentConfig config = parse(str(kHead, "stages:\n  - {name: a, train: 3e}\n  - {name: b, train: 50s}\n")).config;
  EXPECT_EQ(length_of(config.stages[0], 7).steps, 21);
  EXPECT_EQ(length_of(config.stages[1], 7).steps, 50);
  EXPECT_EQ(length_of(config.stages[1], 7).steps_per_epoch, 7);
}

}  // namespace
}  // namespace tessera

// Which settings make two cells the same, and which stages they share.
#include <gtest/gtest.h>

#include "core/cpu/onednn_version.h"
#include "core/io/vfs.h"
#include "tests/core/io/temporary_folder.h"
#include "train/reproduce/cell.h"
#include "train/run/environment.h"

namespace tessera::testing {
namespace {

class Cells : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomically(real_vfs(), folder_ / "x.yaml", R"(
version: 1
name: x
data: {name: glyphs, count: 100, test_count: 20, batch: 10}
model: {name: mlp}
optimizer: {name: sgd, lr: 0.1}
stages: [{name: a, train: 1e, optimizer: {lr: 0.3}}, {name: b, train: 2e}]
)");
    table_.tune = TuneConfig{"optimizer.lr", {0.1, 0.2}, 1};
  }
  Cell with(const std::vector<std::string>& set, std::int64_t seed = 1, std::optional<double> tuned = std::nullopt) const {
    ArmConfig arm;
    arm.name = "arm";
    arm.experiment = folder_ / "x.yaml";
    arm.set = set;
    return make_cell(table_, arm, seed, tuned);
  }
  static Value settings(const Cell& cell) {
    return settings_for_figures(cell.experiment.config, describe_environment(cell.experiment.config));
  }

  TemporaryFolder folder_;
  TableFile table_;
};

TEST_F(Cells, KeysFollowWhatAccuracyDependsOn) {
  const std::string key = with({}).key;
  for (const char* same : {"threads.compute=1", "device=cpu", "checkpoint.keep=7", "report.latency.repeats=9", "log_every=3"}) {
    EXPECT_EQ(with({same}).key, key) << same;
  }
  EXPECT_EQ(with({}, 9).key, key);
  EXPECT_EQ(with({}, 9).experiment.config.seed, 9);
  for (const char* other : {"optimizer.lr=0.2", "stages[1].train=3e", "data.batch=20", "model.name=lenet5"}) {
    EXPECT_NE(with({other}).key, key) << other;
  }
  if (cpu::onednn_has_bf16()) {
    EXPECT_NE(with({"precision=bf16"}).key, key);
  }
}

// The clock of another machine may keep other layers compressed.
TEST_F(Cells, TheMachineCountsWhereAClockDecides) {
  const auto with_stage = [&](const std::string& block, const char* other) {
    return with({"threads.compute=2", "stages[1]." + block, other});
  };
  const auto key = [&](const std::string& block, const char* other) { return with_stage(block, other).key; };
  const std::string factorise = "factorise={layers: '*', format: svd, ranks: {rank: 4}, keep: ";
  const std::string admm = "admm={layers: '*', format: svd, ranks: {rank: 4}, keep: ";
  const std::string latency = "factorise={layers: '*', format: svd, ranks: {latency: {speedup: 2}}, keep: always}";
  const char* const none = "log_every=7";
  for (const char* other : {"threads.compute=1", "report.latency.batch=[7]"}) {
    for (const std::string& block : {factorise, admm}) {
      EXPECT_EQ(key(block + "always}", none), key(block + "always}", other)) << block << other;
      EXPECT_NE(key(block + "faster}", none), key(block + "faster}", other)) << block << other;
    }
    EXPECT_NE(key(latency, none), key(latency, other)) << other;
    // Stages before that one do not depend on the clock.
    EXPECT_EQ(shared_stages(settings(with_stage(factorise + "faster}", none)), settings(with({other}))), 1u) << other;
  }
  EXPECT_EQ(key(factorise + "always, keep_for: {batch: 3}}", none), key(factorise + "always}", none));
  const Cell faster = with_stage(factorise + "faster}", none);
  Value elsewhere = describe_environment(faster.experiment.config);
  elsewhere.set("processor", "another");
  EXPECT_EQ(shared_stages(settings(faster), settings_for_figures(faster.experiment.config, elsewhere)), 1u);
  EXPECT_EQ(settings(with({})), settings_for_figures(with({}).experiment.config, elsewhere));
}

// A stage that takes over ADMM's ranks needs no timing.
TEST_F(Cells, AStageThatTakesAnothersRanksDependsOnThatStageAlone) {
  const auto stages = [&](const char* threads) {
    return settings(with({threads,
                          "stages=[{name: a, train: 1e, admm: {layers: '*', format: svd, ranks: {rank: 4}, keep: always}}, "
                          "{name: b, factorise: {from: a}}]"}));
  };
  EXPECT_EQ(stages("threads.compute=1"), stages("threads.compute=2"));
}

TEST_F(Cells, NamesTellArmValueAndSeed) {
  EXPECT_EQ(with({}, 3).name(), "arm-seed3");
  EXPECT_EQ(with({}, 3, 0.2).name(), "arm-lr0.2-seed3");
  EXPECT_EQ(with({}, 3, 0.2).experiment.config.stages.at(1).training.optimizer.lr(), 0.2);
}

TEST_F(Cells, StagesAreSharedUntilTheyDiffer) {
  const Value one = settings(with({}));
  EXPECT_EQ(shared_stages(one, settings(with({"stages[1].train=9e"}))), 1u);
  EXPECT_EQ(shared_stages(one, settings(with({"stages[0].train=9e"}))), 0u);
  EXPECT_EQ(shared_stages(one, settings(with({"log_every=2"}))), 2u);
  EXPECT_EQ(shared_stages(one, settings(with({}, 2))), 0u) << "another seed";
  EXPECT_EQ(shared_stages(one, settings(with({"data.batch=20"}))), 0u);
  // Stages without a learning rate inherit the top level's.
  EXPECT_EQ(shared_stages(one, settings(with({}, 1, 0.2))), 1u);
}

}  // namespace
}  // namespace tessera::testing

// The veto on a real clock: labelled `bench`, because another load could disturb it.
#include <gtest/gtest.h>

#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "core/config/read.h"
#include "layers/conv2d.h"
#include "layers/sequential.h"

namespace tessera {
namespace {

std::unique_ptr<Module> network() {
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 64, .out = 64, .padding = {1, 1}}));
  initialize(*root, 1);
  return root;
}

PassReport factorise(std::unique_ptr<Module>& root, std::int64_t rank, Phase phase) {
  Value ranks = Value::map();
  ranks.set("out", rank);
  ranks.set("in", rank);
  Value config = Value::map();
  config.set("layers", "conv");
  config.set("ranks", std::move(ranks));
  FactorisePass pass(read<FactoriseConfig>(config));
  const Veto veto({.only_faster = true, .batch = 32, .phase = phase});
  return run_pass(root, pass, {1, 28, 28, 64}, &veto);
}

class VetoClock : public ::testing::TestWithParam<Phase> {};

TEST_P(VetoClock, AFullRankTuckerLayerGoesBack) {
  auto root = network();
  const PassReport report = factorise(root, 64, GetParam());
  EXPECT_EQ(report.layers.at(0).decision, Decision::dense) << describe(*report.layers.at(0).speed);
  EXPECT_LT(report.layers.at(0).speed->ratio.median, 1.0);
}

TEST_P(VetoClock, ATuckerLayerOfLowRankStays) {
  auto root = network();
  const PassReport report = factorise(root, 8, GetParam());
  EXPECT_EQ(report.layers.at(0).decision, Decision::factored) << report.layers.at(0).reason;
  ASSERT_TRUE(report.speed);
  EXPECT_TRUE(report.speed->faster) << describe(*report.speed);
}

INSTANTIATE_TEST_SUITE_P(Phases, VetoClock, ::testing::Values(Phase::inference, Phase::training),
                         [](const auto& phase) { return std::string(name_of(phase.param)); });

}  // namespace
}  // namespace tessera

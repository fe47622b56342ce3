// The veto on a real clock. The tests are labelled `bench`, because other load could disturb them.
#include <gtest/gtest.h>

#include "compress/pass_runner.h"
#include "core/device/decisions.h"
#include "layers/conv2d.h"
#include "layers/fold.h"
#include "layers/sequential.h"
#include "layers/tucker2_conv2d.h"

namespace tessera {
namespace {

std::unique_ptr<Module> network() {
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 64, .out = 64, .padding = {1, 1}}));
  initialize(*root, 1);
  return root;
}

// Ignores the cost: rank selection would not choose a form with more MACs than the dense layer.
class Tucker final : public Pass {
 public:
  explicit Tucker(std::int64_t rank) : ranks_{.out = rank, .in = rank} {}
  std::string_view name() const override { return "tucker"; }
  std::string_view done() const override { return "factored"; }
  std::vector<BlockProblem> try_prepare(std::unique_ptr<Module>&, const Shape&, const PassMeans&) override { return {}; }
  bool matches(const std::string&, const Module& module) const override { return module.kind() == "conv2d"; }
  std::unique_ptr<Module> rewrite(const Module& module, LayerReport& row) const override {
    row.decision = "factored";
    return Tucker2Conv2d::from_dense(dynamic_cast<const Conv2d&>(module), ranks_);
  }

 private:
  Tucker2Ranks ranks_;
};

PassReport factorise(std::unique_ptr<Module>& root, std::int64_t rank, Phase phase) {
  Tucker pass(rank);
  const Veto veto({.only_faster = true, .batch = 32, .timing = {.phase = phase, .folded = for_inference}});
  return run_pass(root, pass, {1, 28, 28, 64}, &veto);
}

class VetoClock : public ::testing::TestWithParam<Phase> {};

TEST_P(VetoClock, ATuckerLayerOfAlmostFullRankGoesBack) {
  const DecisionScope fastest({.measure = true});
  auto root = network();
  const PassReport report = factorise(root, 63, GetParam());
  EXPECT_EQ(report.layers.at(0).decision, "dense") << describe(report.layers.at(0).speed->ratio);
  EXPECT_LT(report.layers.at(0).speed->ratio.median, 1.0);
}

// At full rank both factors vanish. The result is the dense layer under another name, and no clock may call it faster.
TEST_P(VetoClock, ATuckerLayerOfFullRankGoesBack) {
  const DecisionScope fastest({.measure = true});
  auto root = network();
  const auto full = Tucker2Conv2d::from_dense(dynamic_cast<const Conv2d&>(find_module(*root, "conv")), {.out = 64, .in = 64});
  EXPECT_EQ(full->parameters().size(), root->child("conv").parameters().size());
  const PassReport report = factorise(root, 64, GetParam());
  EXPECT_EQ(report.layers.at(0).decision, "dense") << describe(report.layers.at(0).speed->ratio);
  EXPECT_FALSE(report.speed) << "nothing is left to time";
}

TEST_P(VetoClock, ATuckerLayerOfLowRankStays) {
  const DecisionScope fastest({.measure = true});
  auto root = network();
  const PassReport report = factorise(root, 8, GetParam());
  EXPECT_EQ(report.layers.at(0).decision, "factored") << report.layers.at(0).reason;
  ASSERT_TRUE(report.speed);
  EXPECT_TRUE(report.speed->faster) << describe(report.speed->ratio);
}

INSTANTIATE_TEST_SUITE_P(Phases, VetoClock, ::testing::Values(Phase::inference, Phase::training),
                         [](const auto& phase) { return std::string(name_of(phase.param)); });

}  // namespace
}  // namespace tessera

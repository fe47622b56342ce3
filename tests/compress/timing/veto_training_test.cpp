#include <gtest/gtest.h>

#include "compress/pass_runner.h"
#include "compress/timing/veto.h"
#include "core/device/decisions.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/sequential.h"

namespace tessera::testing {
namespace {

// Timing a training pass is not a training step.
TEST(VetoTraining, LeavesStatisticsAndGradientsAlone) {
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 2, .out = 3}));
  root->add_child("bn", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 3}));
  initialize(*root, 1);
  const std::vector<float> mean = named_buffers(*root).at(0).buffer->value.to_vector<float>();
  class Swap final : public Pass {
   public:
    std::string_view name() const override { return "swap"; }
    std::string_view done() const override { return "factored"; }
    std::vector<BlockProblem> try_prepare(std::unique_ptr<Module>&, const Shape&, const PassMeans&) override { return {}; }
    bool matches(const std::string&, const Module& module) const override { return module.kind() == "conv2d"; }
    std::unique_ptr<Module> rewrite(const Module&, LayerReport&) const override {
      auto conv = std::make_unique<Conv2d>(Conv2dConfig{.in = 2, .out = 3});
      initialize(*conv, 2);
      return conv;
    }
  } pass;
  std::vector<std::string> keys;
  const DecisionScope scope(
      {.measure = true, .on_measured = [&](const std::string& key, const std::string&) { keys.push_back(key); }});
  const auto never = [](const Module&) -> std::unique_ptr<Module> { throw InternalError("training was timed on a folded copy"); };
  const Veto veto({.only_faster = false, .batch = 4, .timing = {.phase = Phase::training, .folded = never}});
  const PassReport report = run_pass(root, pass, {1, 5, 5, 2}, &veto);
  ASSERT_TRUE(report.speed);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_NE(keys[0].find(" input [4, 5, 5, 2] first batch 4, training, "), std::string::npos) << keys[0];
  EXPECT_TRUE(report.timed_at.starts_with("batch 4, training, "));
  EXPECT_EQ(named_buffers(*root).at(0).buffer->value.to_vector<float>(), mean);
  for (const NamedParameter& parameter : named_parameters(*root)) EXPECT_FALSE(parameter.parameter->grad().defined());
}

}  // namespace
}  // namespace tessera::testing

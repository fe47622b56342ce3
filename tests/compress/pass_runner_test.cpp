#include "compress/pass_runner.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/sequential.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

const Shape kInput{1, 5, 5, 2};
const Conv2dConfig kConv{.in = 2, .out = 3};

using Rewrite = std::function<std::unique_ptr<Module>(const Module&, LayerReport&)>;

// Rewrites every convolution with the function that the test provides.
class TestPass final : public Pass {
 public:
  explicit TestPass(Rewrite rewrite) : rewrite_(std::move(rewrite)) {}
  std::string_view name() const override { return "test"; }
  std::string_view done() const override { return "factored"; }
  std::vector<BlockProblem> try_prepare(std::unique_ptr<Module>&, const Shape&, const PassMeans&) override {
    ++prepared;
    return {};
  }
  bool matches(const std::string&, const Module& module) const override { return module.kind() == "conv2d"; }
  std::unique_ptr<Module> rewrite(const Module& module, LayerReport& report) const override { return rewrite_(module, report); }

  int prepared = 0;

 private:
  Rewrite rewrite_;
};

std::unique_ptr<Module> network() {
  auto root = std::make_unique<Sequential>();
  root->add_child("conv", std::make_unique<Conv2d>(kConv));
  return root;
}

std::unique_ptr<Module> conv(const Conv2dConfig& config) { return std::make_unique<Conv2d>(config); }

TEST(PassRunner, ReplacesAndReports) {
  auto root = network();
  Conv2dConfig without_bias = kConv;
  without_bias.bias = false;
  TestPass pass([&](const Module& module, LayerReport&) {
    EXPECT_EQ(module.path(), "conv");
    return conv(without_bias);
  });
  const PassReport report = run_pass(root, pass, kInput);
  EXPECT_EQ(pass.prepared, 1);
  EXPECT_EQ(report.pass, "test");
  ASSERT_EQ(report.layers.size(), 1u);
  const LayerReport& layer = report.layers[0];
  EXPECT_EQ(layer.path, "conv");
  EXPECT_EQ(layer.kind_before, "conv2d");
  EXPECT_EQ(layer.parameters_before, 2 * 9 * 3 + 3);
  EXPECT_EQ(layer.parameters_after, 2 * 9 * 3);
  EXPECT_EQ(layer.macs_after, 9 * 2 * 9 * 3);
  EXPECT_GE(layer.seconds, 0.0);
  EXPECT_EQ(report.before.parameters, 57);
  EXPECT_EQ(report.after.parameters, 54);
  EXPECT_EQ(find_module(*root, "conv").parameters().size(), 1u);
  EXPECT_EQ(layer.decision, "factored");
}

TEST(PassRunner, NullLeavesTheLayer) {
  auto root = network();
  const Module* before = &find_module(*root, "conv");
  TestPass pass([](const Module&, LayerReport& report) {
    report.reason = "as it is";
    return std::unique_ptr<Module>();
  });
  const PassReport report = run_pass(root, pass, kInput);
  EXPECT_EQ(&find_module(*root, "conv"), before);
  EXPECT_EQ(report.layers.at(0).reason, "as it is");
  EXPECT_EQ(report.layers.at(0).kind_after, "conv2d");
}

TEST(PassRunner, ARootCanBeReplaced) {
  std::unique_ptr<Module> root = conv(kConv);
  const Module* before = root.get();
  TestPass pass([](const Module&, LayerReport&) { return conv(kConv); });
  run_pass(root, pass, kInput);
  EXPECT_NE(root.get(), before);
}

TEST(PassRunner, RefusesNonFiniteWeightsAndKeepsTheLayer) {
  auto root = network();
  const Module* before = &find_module(*root, "conv");
  TestPass pass([](const Module&, LayerReport&) {
    auto broken = std::make_unique<Conv2d>(kConv);
    broken->weight().value().slice(0, 1, 2).fill(std::numeric_limits<double>::infinity());
    return broken;
  });
  EXPECT_EQ(message_of<NumericError>([&] { run_pass(root, pass, kInput); }),
            "pass 'test': conv.weight contains NaN or Inf after the rewrite; the dense layer is kept");
  EXPECT_EQ(&find_module(*root, "conv"), before);
}

TEST(PassRunner, RefusesAnotherOutputShape) {
  auto root = network();
  TestPass pass([](const Module&, LayerReport&) { return conv({.in = 2, .out = 4}); });
  EXPECT_EQ(message_of<InternalError>([&] { run_pass(root, pass, kInput); }),
            "pass 'test': layer 'conv' gives [1, 3, 3, 3] for input [1, 5, 5, 2], its replacement gives [1, 3, 3, 4]");
}

}  // namespace
}  // namespace tessera::testing

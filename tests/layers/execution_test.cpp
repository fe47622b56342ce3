// The ways in which compressed layers compute (layers/execution.h), each forced in turn.
#include "layers/execution.h"

#include <gtest/gtest.h>

#include <set>

#include "core/autograd/backward.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/linalg/relative_error.h"
#include "core/storage.h"
#include "core/support/profile.h"
#include "layers/cp_conv2d.h"
#include "layers/spatial_svd_conv2d.h"
#include "layers/svd_conv2d.h"
#include "layers/svd_linear.h"
#include "layers/tt_conv2d.h"
#include "layers/tt_embedding.h"
#include "layers/tt_linear.h"
#include "layers/tucker2_conv2d.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/transformer_reference.h"

namespace tessera::testing {
namespace {

struct Layer {
  const char* name;
  std::unique_ptr<Module> (*make)();
  Shape x;
  std::vector<std::string> ways;
};
void PrintTo(const Layer& layer, std::ostream* out) { *out << layer.name; }

// Large enough for a clock: the dense layer needs 4e6 operations.
const Conv2dConfig kConv{.in = 32, .out = 48, .stride = {2, 1}};
const Shape kImages{2, 15, 13, 32};
const std::vector<std::string> kTwo{"chain", "composed"};

const std::vector<Layer> kLayers{
    {"tucker2", [] { return std::unique_ptr<Module>(new Tucker2Conv2d({.conv = kConv, .rank_in = 5, .rank_out = 7})); }, kImages,
     kTwo},
    {"tucker2_in_factor",
     [] {
       return std::unique_ptr<Module>(new Tucker2Conv2d({.conv = kConv, .rank_in = 8, .rank_out = 48, .out_factor = false}));
     },
     kImages, kTwo},
    {"spatial_svd", [] { return std::unique_ptr<Module>(new SpatialSvdConv2d({.conv = kConv, .rank = 9})); }, kImages, kTwo},
    {"cp", [] { return std::unique_ptr<Module>(new CpConv2d({.conv = kConv, .rank = 6})); }, kImages, kTwo},
    {"cp_rows",
     [] {
       return std::unique_ptr<Module>(new CpConv2d({.conv = {.in = 64, .out = 96, .kernel = {3, 1}}, .rank = 6}));
     },
     {2, 15, 13, 64},
     kTwo},
    {"svd_conv2d",
     [] {
       return std::unique_ptr<Module>(new SvdConv2d({.conv = {.in = 96, .out = 128, .kernel = {1, 1}}, .rank = 6}));
     },
     {2, 11, 13, 96},
     kTwo},
    {"tt_conv2d",
     [] {
       return std::unique_ptr<Module>(
           new TtConv2d({.conv = kConv, .out_modes = {4, 3, 4}, .in_modes = {4, 8}, .ranks = {3, 6, 5, 4, 3}}));
     },
     kImages, kTwo},
    {"svd_linear", [] { return std::unique_ptr<Module>(new SvdLinear({.in = 200, .out = 150, .rank = 11})); }, {8, 9, 200}, kTwo},
    {"tt_linear",
     [] {
       return std::unique_ptr<Module>(
           new TtLinear({.in = 128, .out = 180, .out_modes = {5, 6, 6}, .in_modes = {4, 8, 4}, .ranks = {4, 6}}));
     },
     {8, 13, 128},
     {"right-first", "left-first", "composed"}},
    {"tt_linear_of_four_modes",
     [] {
       return std::unique_ptr<Module>(new TtLinear(
           {.in = 180, .out = 144, .out_modes = {3, 4, 4, 3}, .in_modes = {2, 9, 5, 2}, .ranks = {3, 5, 4}, .bias = false}));
     },
     {8, 13, 180},
     {"right-first", "left-first", "composed"}},
    {"tt_embedding",
     [] { return std::unique_ptr<Module>(new TtEmbedding({.vocabulary = 257, .width = 60, .ranks = {21}})); },
     {37, 53},
     {"slices", "table"}},
    {"tt_embedding_of_three_modes",
     [] {
       return std::unique_ptr<Module>(new TtEmbedding(
           {.vocabulary = 331, .width = 60, .vocabulary_modes = {7, 6, 8}, .width_modes = {3, 4, 5}, .ranks = {9, 14}}));
     },
     {37, 53},
     {"slices", "table"}}};

// Whole numbers for a layer that takes them, which get no gradient; otherwise random values.
Tensor input_of(const Module& layer, const Shape& shape) {
  const std::int64_t limit = layer.input_limit();
  return limit > 0 ? whole_numbers(shape, limit, 2) : random_tensor(shape, DType::f32, 2);
}
Var leaf(const Tensor& x) { return Var(x, is_floating(x.dtype())); }

class ExecutionWays : public ::testing::TestWithParam<Layer> {};

struct Sweep {
  Tensor y, x_grad;
  std::vector<Tensor> grads;
};

Sweep sweep(Module& layer, const Tensor& x, const std::string& way, const Context& context = {}) {
  DecisionPolicy policy;
  policy.forced = way;
  const DecisionScope scope(policy);
  for (const auto& parameter : layer.parameters()) parameter->zero_grad();
  const Var input = leaf(x);
  const Var y = layer.forward(input, context);
  backward(y, random_tensor(y.shape(), DType::f32, 3));
  Sweep result{y.value(), input.grad(), {}};
  for (const auto& parameter : layer.parameters()) result.grads.push_back(parameter->grad());
  return result;
}

// Compares values and all gradients, and the values of inference with and without constant weights.
TEST_P(ExecutionWays, GiveTheSame) {
  const std::unique_ptr<Module> layer = GetParam().make();
  layer->reset_parameters(1);
  const Tensor x = input_of(*layer, GetParam().x);
  const Sweep first = sweep(*layer, x, GetParam().ways.front());
  for (const std::string& way : GetParam().ways) {
    SCOPED_TRACE(way);
    const Sweep other = sweep(*layer, x, way);
    EXPECT_LT(linalg::relative_error(first.y, other.y), 1e-5);
    if (is_floating(x.dtype())) {
      EXPECT_LT(linalg::relative_error(first.x_grad, other.x_grad), 1e-5);
    }
    for (std::size_t i = 0; i < first.grads.size(); ++i) {
      EXPECT_LT(linalg::relative_error(first.grads[i], other.grads[i]), 1e-5) << layer->parameters()[i]->name();
    }
    DecisionPolicy policy;
    policy.forced = way;
    const DecisionScope scope(policy);
    const NoGrad no_grad;
    EXPECT_LT(linalg::relative_error(first.y, layer->forward(Var(x), {}).value()), 1e-5);
    const ConstantWeights constant;
    for (int call = 0; call < 2; ++call) EXPECT_LT(linalg::relative_error(first.y, layer->forward(Var(x), {}).value()), 1e-5);
  }
}

// The ways are different computations: no two need the same number of operations.
TEST_P(ExecutionWays, AreDifferentWork) {
  const std::unique_ptr<Module> layer = GetParam().make();
  layer->reset_parameters(1);
  const Tensor x = input_of(*layer, GetParam().x);
  std::set<std::int64_t> flops;
  for (const std::string& way : GetParam().ways) {
    DecisionPolicy policy;
    policy.forced = way;
    const DecisionScope scope(policy);
    Profile profile;
    {
      const ProfileScope profiled(profile);
      layer->forward(Var(x), {});
    }
    std::int64_t sum = 0;
    for (const ProfileRow& row : profile.rows()) sum += row.work.flops;
    EXPECT_TRUE(flops.insert(sum).second) << way << ": " << sum;
  }
}

// Recomputing the chain's images instead of keeping them gives the same bytes.
TEST_P(ExecutionWays, RecomputeGivesTheSameForLessMemory) {
  const std::unique_ptr<Module> layer = GetParam().make();
  layer->reset_parameters(1);
  const Tensor x = input_of(*layer, GetParam().x);
  for (const std::string& way : GetParam().ways) {
    SCOPED_TRACE(way);
    const Sweep kept = sweep(*layer, x, way);
    const Sweep again = sweep(*layer, x, way, {.recompute = true});
    EXPECT_EQ(values(kept.y), values(again.y));
    if (is_floating(x.dtype())) {
      EXPECT_EQ(values(kept.x_grad), values(again.x_grad));
    }
    for (std::size_t i = 0; i < kept.grads.size(); ++i) {
      EXPECT_EQ(values(kept.grads[i]), values(again.grads[i])) << layer->parameters()[i]->name();
    }
  }
  const auto stored = [&](bool recompute) {
    const std::size_t before = memory_stats(Device::cpu()).in_use;
    const Var y = layer->forward(leaf(x), {.recompute = recompute});
    return memory_stats(Device::cpu()).in_use - before;
  };
  EXPECT_LT(stored(true), stored(false));
}

// All ways run inside one scope of constant weights, in which each way keeps what it derives.
TEST_P(ExecutionWays, AreTimedOncePerCaseAndLeaveGradientsAlone) {
  const std::unique_ptr<Module> layer = GetParam().make();
  layer->reset_parameters(1);
  const Tensor x = input_of(*layer, GetParam().x);
  std::vector<std::string> keys;
  DecisionPolicy policy{.measure = true};
  policy.on_measured = [&](const std::string& key, const std::string& choice) {
    if (!key.starts_with("execution ")) return;
    EXPECT_NE(std::ranges::find(GetParam().ways, choice), GetParam().ways.end()) << choice;
    keys.push_back(key);
  };
  const DecisionScope scope(policy);
  for (int step = 0; step < 2; ++step) layer->forward(leaf(x), {});
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_TRUE(keys[0].starts_with("execution " + std::string(layer->kind()) + " {")) << keys[0];
  const std::string phase = is_floating(x.dtype()) ? " f32 training threads" : " i64 training frozen0 threads";
  EXPECT_NE(keys[0].find(phase), std::string::npos) << keys[0];
  for (const auto& parameter : layer->parameters()) EXPECT_FALSE(parameter->grad().defined()) << parameter->name();
  const NoGrad no_grad;
  for (int step = 0; step < 2; ++step) layer->forward(Var(x), {});
  EXPECT_EQ(keys.size(), 2U);
  const ConstantWeights constant;
  const Tensor kept = layer->forward(Var(x), {}).value();
  EXPECT_EQ(keys.size(), 3U);
  EXPECT_LT(linalg::relative_error(kept, layer->forward(Var(x), {}).value()), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Layers, ExecutionWays, ::testing::ValuesIn(kLayers), [](const auto& layer) { return layer.param.name; });

TEST(Execution, OfALittleLayerReadsNoClock) {
  Tucker2Conv2d layer({.conv = {.in = 4, .out = 6}, .rank_in = 2, .rank_out = 3});
  layer.reset_parameters(1);
  DecisionPolicy policy{.measure = true};
  policy.on_measured = [](const std::string& key, const std::string&) { EXPECT_FALSE(key.starts_with("execution ")) << key; };
  const DecisionScope scope(policy);
  layer.forward(Var(random_tensor({1, 8, 8, 4}, DType::f32, 2)), {});
}

}  // namespace
}  // namespace tessera::testing

#include "compress/sparsify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "compress/formats/sparse_layer.h"
#include "compress/pass_runner.h"
#include "compress/patterns/builtin.h"
#include "compress/prune/scores.h"
#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/device/decisions.h"
#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/builtin.h"
#include "layers/conv2d.h"
#include "layers/cp_conv2d.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/sequential.h"
#include "layers/spatial_svd_conv2d.h"
#include "layers/svd_conv2d.h"
#include "layers/svd_linear.h"
#include "layers/tucker2_conv2d.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/sparse_reference.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

const Shape kInput{2, 6, 6, 4};

void mask_half(Module& layer, const char* name = "weight") {
  Parameter& weight = layer.parameter(name);
  const Tensor mask = Tensor::zeros(weight.value().shape(), DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); i += 2) mask.data<std::uint8_t>()[i] = 1;
  weight.set_mask(mask);
}

// conv and fc are masked. grouped is masked too, but no sparse layer can hold it. plain is not masked.
std::unique_ptr<Module> network() {
  auto root = std::make_unique<Sequential>();
  mask_half(root->add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 4, .out = 8, .padding = {1, 1}})));
  root->add_child("plain", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 8, .padding = {1, 1}}));
  mask_half(
      root->add_child("grouped", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 8, .padding = {1, 1}, .groups = 2})));
  root->add_child("flatten", std::make_unique<Flatten>());
  mask_half(root->add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 288, .out = 5})));
  initialize(*root, 1);
  for (const char* name : {"conv", "grouped", "fc"}) mask_half(root->child(name));
  return root;
}

PassReport sparsify(std::unique_ptr<Module>& root, const std::string& json) {
  SparsifyPass pass(read<SparsifyConfig>(parse_json(json, "test")));
  return run_pass(root, pass, kInput);
}

TEST(Sparsify, MaskedLayersBecomeSparseAndAnswerTheSame) {
  auto root = network();
  const Var x(random_tensor(kInput, DType::f32, 1));
  const Tensor before = (*root)(x, {}).value();
  const PassReport report = sparsify(root, "{}");
  ASSERT_EQ(report.layers.size(), 3u);
  EXPECT_EQ(report.layers[0].path, "conv");
  EXPECT_EQ(report.layers[0].decision, "sparse");
  EXPECT_EQ(report.layers[0].kind_after, "sparse_conv2d");
  EXPECT_EQ(report.layers[0].parameters_after, 144 + 8);
  EXPECT_EQ(report.layers[0].macs_after, 144 * 36);
  EXPECT_EQ(report.layers[1].path, "grouped");
  EXPECT_EQ(report.layers[1].decision, "dense");
  EXPECT_EQ(report.layers[1].reason, "has 2 groups; sparse kernels need 1");
  EXPECT_EQ(report.layers[2].kind_after, "sparse_linear");
  EXPECT_EQ(root->child("plain").kind(), "conv2d");
  EXPECT_TRUE(root->child("grouped").parameter("weight").mask().defined());
  EXPECT_LE(relative_error((*root)(x, {}).value(), before), 1e-5);
}

TEST(Sparsify, SelectedLayersWithoutAMaskAreReported) {
  auto root = network();
  const PassReport report = sparsify(root, R"({"layers": ["plain", "fc"]})");
  ASSERT_EQ(report.layers.size(), 2u);
  EXPECT_EQ(report.layers[0].reason, "its weight has no mask; a prune block makes one");
  EXPECT_EQ(report.layers[1].decision, "sparse");
  EXPECT_EQ(root->child("conv").kind(), "conv2d");
}

TEST(Sparsify, WithoutMasksItIsRefused) {
  auto root = network();
  for (const char* name : {"conv", "grouped", "fc"}) root->child(name).parameter("weight").set_mask({});
  EXPECT_NE(message_of<ConfigError>([&] { sparsify(root, "{}"); }).find("no layer's weight has a mask"), std::string::npos);
  auto other = network();
  EXPECT_NE(message_of<ConfigError>([&] { sparsify(other, R"({"layers": "cnv"})"); }).find("conv"), std::string::npos);
}

// A factored layer whose parts become separate sparse layers.
struct Factored {
  const char* name;
  std::function<std::unique_ptr<Module>()> make;
  Shape input;
  std::vector<const char*> masked;
  std::vector<std::string> kinds;  // kinds of the parts
};

template <class Layer, class Config>
std::function<std::unique_ptr<Module>()> factored(const Config& config) {
  return [config] { return std::make_unique<Layer>(config); };
}

std::vector<Factored> factored_layers() {
  const Conv2dConfig wide{.in = 6, .out = 10, .kernel = {3, 3}, .stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}};
  const Conv2dConfig pointwise{.in = 6, .out = 9, .kernel = {1, 1}, .stride = {2, 2}, .bias = false};
  const Shape image{2, 7, 5, 6};
  const std::string dense = "conv2d", sparse = "sparse_conv2d";
  return {{"svd_linear",
           factored<SvdLinear>(SvdLinearConfig{.in = 13, .out = 7, .rank = 5}),
           {3, 13},
           {"in_factor", "out_factor"},
           {"sparse_linear", "sparse_linear"}},
          {"svd_linear_one",
           factored<SvdLinear>(SvdLinearConfig{.in = 13, .out = 7, .rank = 5, .bias = false}),
           {2, 3, 13},
           {"in_factor"},
           {"sparse_linear", "linear"}},
          {"svd_conv",
           factored<SvdConv2d>(SvdConv2dConfig{.conv = pointwise, .rank = 4}),
           image,
           {"in_factor", "out_factor"},
           {sparse, sparse}},
          {"svd_conv_norm",
           factored<SvdConv2d>(SvdConv2dConfig{.conv = pointwise, .rank = 4, .batch_norm = true}),
           image,
           {"out_factor"},
           {dense, "batch_norm", sparse}},
          {"tucker2",
           factored<Tucker2Conv2d>(Tucker2Conv2dConfig{.conv = wide, .rank_in = 4, .rank_out = 5}),
           image,
           {"in_factor", "core", "out_factor"},
           {sparse, sparse, sparse}},
          {"tucker2_core",
           factored<Tucker2Conv2d>(Tucker2Conv2dConfig{.conv = wide, .rank_in = 4, .rank_out = 5}),
           image,
           {"core"},
           {dense, sparse, dense}},
          {"tucker2_norms",
           factored<Tucker2Conv2d>(Tucker2Conv2dConfig{.conv = wide, .rank_in = 4, .rank_out = 5, .batch_norm = true}),
           image,
           {"in_factor", "core"},
           {sparse, "batch_norm", sparse, "batch_norm", dense}},
          {"tucker1",
           factored<Tucker2Conv2d>(Tucker2Conv2dConfig{.conv = wide, .rank_in = 6, .rank_out = 5, .in_factor = false}),
           image,
           {"core", "out_factor"},
           {sparse, sparse}},
          {"spatial",
           factored<SpatialSvdConv2d>(SpatialSvdConv2dConfig{.conv = wide, .rank = 3}),
           image,
           {"in_factor", "out_factor"},
           {sparse, sparse}},
          {"cp",
           factored<CpConv2d>(CpConv2dConfig{.conv = wide, .rank = 4}),
           image,
           {"in_factor", "vertical", "horizontal", "out_factor"},
           {sparse, dense, dense, sparse}}};
}

// Makes the masks of a layer's factors.
struct Masking {
  const char* name;
  PatternConfig pattern;
};

// Every pattern, in sizes that fit the small factors.
const std::vector<Masking>& maskings() {
  static const std::vector<Masking> all{{"unstructured", {}},
                                        {"block", {.pattern = "block", .block = Extent{2, 2}}},
                                        {"n_m", {.pattern = "n_m", .n_m = "1:2"}},
                                        {"tile", {.pattern = "tile", .group = 3}},
                                        {"tile_element", {.pattern = "tile_element", .group = 3, .extra = 0.2}},
                                        {"channel", {.pattern = "channel"}}};
  return all;
}

class SparseFactors : public ::testing::TestWithParam<Factored> {
 protected:
  // Values differ from the initial ones. A part is masked: every second value, or a third of its values by the pattern in the
  // factors that can have it.
  static std::unique_ptr<Module> made(const PatternConfig* config = nullptr) {
    std::unique_ptr<Module> layer = GetParam().make();
    std::uint64_t seed = 1;
    for (const NamedParameter& named : named_parameters(*layer)) {
      named.parameter->set_value(random_tensor(named.parameter->value().shape(), DType::f32, ++seed));
    }
    for (const NamedBuffer& named : named_buffers(*layer)) {
      named.buffer->value = random_tensor(named.buffer->value.shape(), DType::f32, ++seed);
      for (std::int64_t i = 0; i < named.buffer->value.numel(); ++i) {
        float& value = named.buffer->value.data<float>()[i];
        value = 0.5F + std::abs(value);
      }
    }
    for (const char* name : GetParam().masked) {
      if (config == nullptr) {
        mask_half(*layer, name);
      } else {
        mask_by(*make_pattern(*config), layer->parameter(name));
      }
    }
    return layer;
  }
  static void mask_by(const Pattern& pattern, Parameter& factor) {
    const Tensor scores = magnitudes(factor.value());
    if (!pattern.why_not(scores.shape()).empty()) return;
    factor.set_mask(pattern.project({&scores, 1}, (scores.numel() + 2) / 3).front());
  }

  struct Result {
    Tensor y, grad_x;
    std::map<std::vector<double>, std::vector<double>> grads;  // key: the parameter's kept values
  };
  static Result run(Module& layer, bool training) {
    const Var input(random_tensor(GetParam().input, DType::f32, 50), true);
    const Var y = layer(input, {.training = training});
    backward(y, random_tensor(y.shape(), DType::f32, 51));
    Result result{.y = y.value(), .grad_x = input.grad(), .grads = {}};
    for (const NamedParameter& named : named_parameters(layer)) {
      const Parameter& parameter = *named.parameter;
      result.grads[kept(parameter.value(), parameter.mask())] = kept(parameter.grad(), parameter.mask());
    }
    return result;
  }
};

// In evaluation and in training (with norms by batch statistics), with sparse kernels and with dense ones.
TEST_P(SparseFactors, AnswerWhatTheFactoredLayerDoes) {
  std::size_t taken = 0;
  for (const char* way : {"sparse", "dense"}) {
    for (const Masking& masking : maskings()) {
      const std::unique_ptr<Module> before = made(&masking.pattern);
      if (!why_not_sparse(*before).empty()) continue;
      for (const bool training : {false, true}) {
        SCOPED_TRACE(str(way, ' ', masking.name, training ? " training" : " evaluating"));
        const std::unique_ptr<Module> after = sparse_layer(*before);
        EXPECT_EQ(after->output_shape(GetParam().input), before->output_shape(GetParam().input));
        const std::unique_ptr<Module> copy = made(&masking.pattern);
        const Result want = run(*copy, training);
        const DecisionScope scope({.forced = way});
        const Result found = run(*after, training);
        EXPECT_LE(relative_error(found.y, want.y), 1e-5);
        EXPECT_LE(relative_error(found.grad_x, want.grad_x), 1e-5);
        std::vector<double> grads, want_grads;  // compared relative to the largest of all: that of a bias before a norm is zero
        for (const auto& [of, grad] : want.grads) {
          ASSERT_TRUE(found.grads.contains(of)) << of.size() << " values";
          grads.insert(grads.end(), found.grads.at(of).begin(), found.grads.at(of).end());
          want_grads.insert(want_grads.end(), grad.begin(), grad.end());
        }
        EXPECT_LE(relative_error(grads, want_grads), 1e-5);
        EXPECT_EQ(found.grads.size(), want.grads.size());
        for (const char* const pass : {"forward", "backward_input", "backward_weight"}) {
          const auto is_one = [&](const std::string& key) { return key.starts_with(str("sparse.", pass, ' ')); };
          EXPECT_GE(std::ranges::count_if(scope.log().forced, is_one), 1) << pass;
        }
        ++taken;
      }
    }
  }
  EXPECT_GE(taken, 2U * 2U * 4U) << "nearly every pattern fits some factor of each layer";
}

TEST_P(SparseFactors, AreLayersOfTheirOwnInASequentialThatFilesCanHold) {
  const std::unique_ptr<Module> before = made();
  const Tensor first = before->parameters().front()->value().clone();
  const std::unique_ptr<Module> after = sparse_layer(*before);
  EXPECT_EQ(after->kind(), "sequential");
  std::vector<std::string> kinds;
  for (const Module::Child& part : after->children()) kinds.emplace_back(part.module->kind());
  EXPECT_EQ(kinds, GetParam().kinds);
  EXPECT_EQ(describe(*rebuild(describe(*after), builtin_layers())), describe(*after));
  std::int64_t kept = 0, had = 0;
  for (const NamedParameter& named : named_parameters(*after)) kept += named.parameter->value().numel();
  for (const NamedParameter& named : named_parameters(*before)) had += named.parameter->value().numel();
  EXPECT_LT(kept, had);
  for (const NamedParameter& named : named_parameters(*after)) named.parameter->value().fill(7);
  EXPECT_EQ(before->parameters().front()->value().to_vector<float>(), first.to_vector<float>()) << "nothing is shared";
}

TEST_P(SparseFactors, StayDenseWithoutAMask) {
  const std::unique_ptr<Module> layer = made();
  for (const char* name : GetParam().masked) layer->parameter(name).set_mask({});
  EXPECT_EQ(why_not_sparse(*layer), "none of its factors has a mask; a prune block makes them");
}

INSTANTIATE_TEST_SUITE_P(Layers, SparseFactors, ::testing::ValuesIn(factored_layers()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Sparsify, FactorsOfSeveralGroupsAloneStayDense) {
  CpConv2d layer(CpConv2dConfig{.conv = {.in = 6, .out = 10, .kernel = {3, 3}}, .rank = 4});
  mask_half(layer, "vertical");
  EXPECT_EQ(why_not_sparse(layer), "of its factors only those of several groups have a mask; sparse kernels need 1");
}

TEST(Sparsify, AFactoredLayerIsReportedWithWhatItKeepsAndTimedByItsFactors) {
  std::set<std::string> keys;
  for (const char* const factor : {"in_factor", "core"}) {
    std::unique_ptr<Module> root = std::make_unique<Sequential>();
    Module& conv = root->add_child("conv", std::make_unique<Tucker2Conv2d>(Tucker2Conv2dConfig{
                                               .conv = {.in = 4, .out = 6, .padding = {1, 1}}, .rank_in = 3, .rank_out = 4}));
    initialize(*root, 1);
    conv.parameter("out_factor").set_trainable(false);
    mask_half(conv, factor);
    const std::int64_t dense = total_cost(*root, kInput).parameters, masked = conv.parameter(factor).value().numel();
    const DecisionScope scope({.measure = true, .on_measured = [&](const std::string& key, const std::string&) {
                                 if (key.starts_with("keep.layer ")) keys.insert(key);
                               }});
    SparsifyPass pass(read<SparsifyConfig>(parse_json("{}", "test")));
    const Veto veto({.only_faster = false, .batch = 2});
    const PassReport report = run_pass(root, pass, kInput, &veto);
    ASSERT_EQ(report.layers.size(), 1u);
    EXPECT_EQ(report.layers[0].decision, "sparse");
    EXPECT_EQ(report.layers[0].kind_before, "tucker2_conv2d");
    EXPECT_EQ(report.layers[0].kind_after, "sequential");
    EXPECT_EQ(report.layers[0].ranks, (Ranks{{"kept", (masked + 1) / 2}}));
    EXPECT_EQ(report.layers[0].parameters_after, dense - masked / 2);
    EXPECT_TRUE(report.layers[0].speed) << "against the dense factors";
    EXPECT_FALSE(find_module(*root, "conv.2").parameter("weight").trainable());
  }
  EXPECT_EQ(keys.size(), 2u) << "a timing of one chain is not another's";
}

}  // namespace
}  // namespace tessera::testing

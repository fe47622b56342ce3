#include "layers/transformer_block.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "core/cpu/parallel.h"
#include "core/storage.h"
#include "layers/activation.h"
#include "layers/builtin.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/models/transformer.h"
#include "layers/rms_norm.h"
#include "layers/svd_linear.h"
#include "tests/layers/transformer_reference.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

constexpr double kTolerance = 5e-5;  // f32 against f64, through two branches

std::vector<TransformerBlockOptions> variants() {
  return {{.width = 6, .hidden = 11, .attention = {.heads = 2, .causal = true}, .activation = "gelu_tanh"},
          {.norm_last = true, .width = 9, .hidden = 7, .attention = {.heads = 3}, .activation = "gelu", .eps = 1e-12},
          {.width = 8,
           .hidden = 5,
           .attention = {.heads = 4, .kv_heads = 2, .causal = true, .rotary = 10000},
           .activation = "swiglu",
           .norm = "rms_norm",
           .bias = false},
          {.width = 1, .hidden = 1, .attention = {.heads = 1}, .activation = "relu", .norm = "rms_norm"}};
}

TEST(TransformerBlock, IsThatOfPlainOps) {
  for (const TransformerBlockOptions& options : variants()) {
    SCOPED_TRACE(options.activation);
    const auto block = make_transformer_block(options);
    draw(*block, 2);
    const Parameters exact = in_f64(*block);
    const Tensor value = normal({2, 7, options.width}, 3);
    const Var x(value, true), x64(value.to(DType::f64), true);
    const Var y = (*block)(x, {}), want = plain_block(x64, exact, "", options);
    EXPECT_EQ(block->output_shape(x.shape()), y.shape());
    EXPECT_LE(relative_error(y.value(), want.value()), kTolerance);
    const Tensor grad_y = normal(y.shape(), 4);
    backward(y, grad_y);
    backward(want, grad_y.to(DType::f64));
    if (options.width > 1) {  // a norm of one feature passes on no gradient
      EXPECT_LE(relative_error(x.grad(), x64.grad()), kTolerance);
      expect_same_gradients(*block, exact, kTolerance);
    }
  }
}

TEST(TransformerBlock, CountsItsPartsOnce) {
  const auto block = make_transformer_block({.width = 6, .hidden = 11, .attention = {.heads = 2, .causal = true}});
  Trace trace;
  block->output_shape({3, 5, 6}, &trace);
  std::vector<std::string> rows;
  std::int64_t parameters = 0;
  for (const LayerCost& row : trace) {
    rows.push_back(row.path);
    parameters += row.parameters;
  }
  EXPECT_EQ(rows,
            (std::vector<std::string>{"norm1", "attn.qkv", "attn.heads", "attn.out", "norm2", "mlp.fc1", "mlp.act", "mlp.fc2"}));
  EXPECT_EQ(parameters, 2 * 12 + (18 * 6 + 18) + (6 * 6 + 6) + (11 * 6 + 11) + (6 * 11 + 6));
  EXPECT_EQ(total_cost(*block, {3, 5, 6}).macs, 5 * (18 * 6 + 36 + 2 * 66) + 2 * 15 * 6);
}

struct Sweep {
  std::vector<float> y;
  std::vector<std::vector<float>> grads;  // gradients of x, then of the parameters
};

Sweep sweep(Module& root, const Tensor& value, bool x_trained) {
  const StepState step;
  const Var x(value, x_trained);
  const Var y = root(x, {.training = true, .seed = 5, .step = &step});
  backward(y, normal(y.shape(), 8));
  Sweep all{.y = y.value().to_vector<float>(), .grads = {}};
  if (x_trained) all.grads.push_back(x.grad().to_vector<float>());
  for (const NamedParameter& entry : named_parameters(root)) {
    const Tensor& grad = entry.parameter->grad();
    all.grads.push_back(grad.defined() ? grad.to_vector<float>() : std::vector<float>());
    entry.parameter->zero_grad();
  }
  return all;
}

std::unique_ptr<Module> blocks(bool recompute, bool factored, std::int64_t layers, TransformerBlockOptions options) {
  options.recompute = recompute;
  auto all = models::blocks_of(layers, options);
  initialize(*all, 3);
  for (std::int64_t i = 0; factored && i < layers; ++i) {
    Module& mlp = all->child(str(i)).child("mlp");
    auto svd = SvdLinear::shaped_for(dynamic_cast<const Linear&>(mlp.child("fc1")), 3);
    mlp.replace_child("fc1", std::move(svd));
    mlp.child("fc1").reset_parameters(3);
  }
  return all;
}

TEST(TransformerBlock, ComputedAgainGivesTheSameBytes) {
  for (TransformerBlockOptions options : variants()) {
    options.dropout = options.attention.dropout = 0.25;
    for (const bool factored : {false, true}) {
      if (factored && options.hidden < 3) continue;
      for (const bool x_trained : {true, false}) {
        SCOPED_TRACE(str(options.activation, " factored ", factored, " x trained ", x_trained));
        const Tensor x = normal({2, 5, options.width}, 1);
        const Sweep kept = sweep(*blocks(false, factored && options.width > 3, 3, options), x, x_trained);
        const Sweep again = sweep(*blocks(true, factored && options.width > 3, 3, options), x, x_trained);
        EXPECT_EQ(again.y, kept.y);
        EXPECT_EQ(again.grads, kept.grads);
      }
    }
  }
}

TEST(TransformerBlock, ComputedAgainLeavesWhatIsFrozen) {
  TransformerBlockOptions options = variants().front();
  const auto kept = blocks(false, false, 2, options), again = blocks(true, false, 2, options);
  for (const auto* root : {&kept, &again}) {
    for (const NamedParameter& entry : named_parameters(**root)) {
      entry.parameter->set_trainable(entry.path.find("mlp.fc1") != std::string::npos);
    }
  }
  const Tensor x = normal({2, 5, options.width}, 1);
  const Sweep want = sweep(*kept, x, false);
  EXPECT_EQ(sweep(*again, x, false).grads, want.grads);
  const NoGrad no_grad;
  EXPECT_EQ((*again)(Var(x), {}).value().to_vector<float>(), (*kept)(Var(x), {}).value().to_vector<float>());
}

TEST(TransformerBlock, ComputedAgainNeedsTheMemoryOfOneBlock) {
  const TransformerBlockOptions options{.width = 32, .hidden = 128, .attention = {.heads = 4}};
  const Tensor x = normal({4, 64, 32}, 1);
  const auto peak_of = [&](bool recompute) {
    const auto root = blocks(recompute, false, 8, options);
    const cpu::OneThread alone;  // with several threads, one may end its share of attention before another begins
    const std::size_t before = memory_stats(Device::cpu()).in_use;
    reset_peak_memory(Device::cpu());
    const StepState step;
    const Var y = (*root)(Var(x), {.training = true, .seed = 5, .step = &step});
    backward(y, normal(y.shape(), 8));
    return memory_stats(Device::cpu()).peak - before;
  };
  const std::size_t kept = peak_of(false), again = peak_of(true);
  EXPECT_LT(again, kept / 2) << again << " and " << kept << " bytes";
}

TEST(TransformerBlock, IsRebuiltFromItsTree) {
  for (TransformerBlockOptions options : variants()) {
    options.dropout = 0.1;
    const auto block = make_transformer_block(options);
    EXPECT_EQ(describe(*rebuild(describe(*block), builtin_layers())), describe(*block));
  }
}

TEST(TransformerBlock, RefusesPartsThatDoNotFit) {
  EXPECT_EQ(message_of<ConfigError>([] { make_transformer_block({.width = 7, .attention = {.heads = 2}}); }),
            "transformer_block: width is 7, heads is 2; heads must divide width");
  EXPECT_EQ(message_of<ConfigError>([] { make_transformer_block({.activation = "tanh"}); }),
            "transformer_block: activation is 'tanh'; choices: gelu, gelu_tanh, relu, swiglu");
  EXPECT_EQ(message_of<ConfigError>([] { make_transformer_block({.norm = "batch_norm"}); }),
            "transformer_block: norm is 'batch_norm'; choices: layer_norm, rms_norm");
  const auto block = make_transformer_block({.width = 4, .hidden = 3, .attention = {.heads = 2}});
  block->child("mlp").replace_child("fc2", std::make_unique<Linear>(LinearConfig{.in = 3, .out = 5}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              block->output_shape({1, 2, 4});
            }),
            "transformer_block '': mlp gives [1, 2, 5] for [1, 2, 4]; they must be equal");
  const Registry<Module> layers = builtin_layers();
  EXPECT_NE(message_of<ConfigError>([&] {
              rebuild(parse_json(R"({"kind": "transformer_block", "config": {}, "children": []})", "test"), layers);
            }).find("has no child 'norm1'"),
            std::string::npos);
}

TEST(RmsNorm, IsThatOfPlainOps) {
  RmsNorm norm({.channels = 7, .eps = 1e-3});
  draw(norm, 1);
  const Parameters exact = in_f64(norm);
  const Tensor value = normal({2, 3, 7}, 2);
  const Var x(value, true), x64(value.to(DType::f64), true);
  const Var y = norm(x, {}), want = div(x64, sqrt(add_scalar(mean(mul(x64, x64), {-1}, true), 1e-3)));
  backward(y, normal(y.shape(), 3));
  const Var scaled = mul(want, exact.at("weight"));
  backward(scaled, normal(y.shape(), 3).to(DType::f64));
  EXPECT_LE(relative_error(y.value(), scaled.value()), 1e-5);
  EXPECT_LE(relative_error(x.grad(), x64.grad()), 1e-5);
  expect_same_gradients(norm, exact, 1e-5);
  EXPECT_EQ(norm.parameter("weight").role(), ParameterRole::norm);
  EXPECT_EQ(describe(*rebuild(describe(norm), builtin_layers())), describe(norm));
  EXPECT_EQ(message_of<ShapeError>([&] { norm.output_shape({2, 6}); }), "rms_norm '': input is [2, 6]; needs [..., 7]");
}

TEST(Swiglu, HalvesTheLastAxis) {
  Swiglu layer;
  const Tensor value = normal({2, 3, 10}, 2);
  const Var y = layer(Var(value), {});
  EXPECT_EQ(y.shape(), layer.output_shape({2, 3, 10}));
  const Var x(value.to(DType::f64));
  EXPECT_LE(relative_error(y.value(), mul(silu(slice(x, 2, 0, 5)), slice(x, 2, 5, 10)).value()), 1e-6);
  EXPECT_EQ(message_of<ShapeError>([&] { layer.output_shape({2, 3}); }), "swiglu '': input is [2, 3]; needs [..., 2n]");
}

}  // namespace
}  // namespace tessera::testing

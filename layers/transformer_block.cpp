#include "layers/transformer_block.h"

#include <utility>

#include "core/autograd/recompute.h"
#include "core/config/read.h"
#include "core/ops/arithmetic.h"
#include "layers/activation.h"
#include "layers/dropout.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/rms_norm.h"
#include "layers/sequential.h"

namespace tessera {
namespace {

std::unique_ptr<Module> linear(std::int64_t in, std::int64_t out, bool bias, double deviation) {
  return std::make_unique<Linear>(LinearConfig{.in = in, .out = out, .bias = bias, .deviation = deviation});
}

std::unique_ptr<Module> make_activation(const std::string& name) {
  if (name == "gelu") return std::make_unique<Gelu>();
  if (name == "gelu_tanh") return std::make_unique<Gelu>(GeluConfig{.form = "tanh"});
  if (name == "relu") return std::make_unique<Relu>();
  TESSERA_CHECK(name == "swiglu", ConfigError, "transformer_block: activation is '", name,
                "'; choices: gelu, gelu_tanh, relu, swiglu");
  return std::make_unique<Swiglu>();
}

void add_dropout(Module& branch, double p) {
  if (p > 0) branch.add_child("dropout", std::make_unique<Dropout>(DropoutConfig{.p = p}));
}

std::unique_ptr<Module> make_attention(const TransformerBlockOptions& o) {
  const std::int64_t heads = o.attention.heads, kv_heads = o.attention.kv_heads.value_or(heads);
  TESSERA_CHECK(heads >= 1 && o.width % heads == 0, ConfigError, "transformer_block: width is ", o.width, ", heads is ", heads,
                "; heads must divide width");
  auto branch = std::make_unique<Sequential>();
  branch->add_child("qkv", linear(o.width, o.width + 2 * kv_heads * (o.width / heads), o.bias, o.deviation));
  branch->add_child("heads", std::make_unique<SelfAttention>(o.attention));
  branch->add_child("out", linear(o.width, o.width, o.bias, o.last_deviation));
  add_dropout(*branch, o.dropout);
  return branch;
}

std::unique_ptr<Module> make_mlp(const TransformerBlockOptions& o) {
  auto branch = std::make_unique<Sequential>();
  branch->add_child("fc1", linear(o.width, o.activation == "swiglu" ? 2 * o.hidden : o.hidden, o.bias, o.deviation));
  branch->add_child("act", make_activation(o.activation));
  branch->add_child("fc2", linear(o.hidden, o.width, o.bias, o.last_deviation));
  add_dropout(*branch, o.dropout);
  return branch;
}

}  // namespace

void TransformerBlockConfig::fields(Fields& f) {
  f.add("norm", norm, {.help = "before or behind what it normalises", .choices = {"first", "last"}, .observable = "bytes"});
  f.add("recompute", recompute,
        {.help = "keeps the block's input alone, and computes the rest again in the backward", .observable = "plan"});
}

Value TransformerBlock::config() const { return write(config_); }

Var TransformerBlock::forward(const Var& x, const Context& context) {
  if (!config_.recompute || !grad_enabled()) return computed(x, context);
  std::vector<Var> parameters;
  for_each_module(*this, [&](const Module& module) {
    for (const auto& parameter : module.parameters()) parameters.push_back(parameter->var());
  });
  return recompute(x, parameters, [this, context](const Var& input) { return computed(input, context); });
}

Var TransformerBlock::computed(const Var& x, const Context& context) const {
  Module &norm1 = child("norm1"), &attn = child("attn"), &norm2 = child("norm2"), &mlp = child("mlp");
  if (config_.norm == "last") {
    const Var y = norm1(add(x, attn(x, context)), context);
    return norm2(add(y, mlp(y, context)), context);
  }
  const Var y = add(x, attn(norm1(x, context), context));
  return add(y, mlp(norm2(y, context), context));
}

Shape TransformerBlock::output_shape(const Shape& input, Trace* trace) const {
  const auto branch = [&](const char* norm, const char* body) {
    const bool first = config_.norm == "first";
    const Shape read = first ? child(norm).output_shape(input, trace) : input;
    const Shape added = child(body).output_shape(read, trace);
    TESSERA_CHECK(added == input, ShapeError, "transformer_block '", path(), "': ", body, " gives ", added, " for ", input,
                  "; they must be equal");
    if (first) return;
    const Shape normed = child(norm).output_shape(input, trace);
    TESSERA_CHECK(normed == input, ShapeError, "transformer_block '", path(), "': ", norm, " gives ", normed, " for ", input,
                  "; they must be equal");
  };
  branch("norm1", "attn");
  branch("norm2", "mlp");
  return input;
}

std::unique_ptr<Module> make_norm(std::string_view kind, std::int64_t channels, double eps) {
  if (kind == "rms_norm") return std::make_unique<RmsNorm>(RmsNormConfig{.channels = channels, .eps = eps});
  TESSERA_CHECK(kind == "layer_norm", ConfigError, "transformer_block: norm is '", kind, "'; choices: layer_norm, rms_norm");
  return std::make_unique<LayerNorm>(LayerNormConfig{.channels = channels, .eps = eps});
}

std::unique_ptr<TransformerBlock> make_transformer_block(const TransformerBlockOptions& options) {
  auto block = std::make_unique<TransformerBlock>(
      TransformerBlockConfig{.norm = options.norm_last ? "last" : "first", .recompute = options.recompute});
  block->add_child("norm1", make_norm(options.norm, options.width, options.eps));
  block->add_child("attn", make_attention(options));
  block->add_child("norm2", make_norm(options.norm, options.width, options.eps));
  block->add_child("mlp", make_mlp(options));
  return block;
}

}  // namespace tessera

// What transformers are made of beside linear layers.
#include <cmath>
#include <optional>

#include "core/config/read.h"
#include "core/ops/attention_math.h"
#include "layers/class_token.h"
#include "layers/layer_norm.h"
#include "layers/positions.h"
#include "layers/rms_norm.h"
#include "layers/segments.h"
#include "layers/self_attention.h"
#include "layers/transformer_block.h"
#include "train/onnx/emitter.h"

namespace tessera {
namespace {

constexpr double kLowest = -3e38;  // the score of a pair that does not see each other

// x / sqrt(mean(x^2) + eps) along the last axis.
OnnxValue normalised(OnnxBuilder& g, const OnnxValue& x, double eps) {
  const OnnxValue square = g.mean(g.binary("Mul", x, x), x.shape.rank() - 1, true);
  return g.binary("Div", x, g.unary("Sqrt", g.binary("Add", square, g.number(eps))));
}

OnnxValue emit_layer_norm(OnnxEmitter& e, const LayerNorm& norm, const OnnxValue& given) {
  OnnxBuilder& g = e.graph;
  const OnnxValue x = g.channels_last(given);
  const OnnxValue centred = g.binary("Sub", x, g.mean(x, x.shape.rank() - 1, true));
  const OnnxValue y = normalised(g, centred, read<LayerNormConfig>(norm.config()).eps);
  return e.add_bias(g.binary("Mul", y, e.parameter(norm, norm.parameter("weight"))), norm);
}

OnnxValue emit_rms_norm(OnnxEmitter& e, const RmsNorm& norm, const OnnxValue& x) {
  const OnnxValue y = normalised(e.graph, e.graph.channels_last(x), read<RmsNormConfig>(norm.config()).eps);
  return e.graph.binary("Mul", y, e.parameter(norm, norm.parameter("weight")));
}

// The first rows of a table, one of a position each.
OnnxValue rows(OnnxEmitter& e, const Module& owner, std::int64_t count) {
  const Tensor& table = owner.parameter("weight").value();
  return e.graph.tensor(join_path(owner.path(), "weight"), table.slice(0, 0, count));
}

OnnxValue emit_positions(OnnxEmitter& e, const Positions& positions, const OnnxValue& x) {
  return e.graph.binary("Add", x, rows(e, positions, x.shape[1]));
}

// The first segment, that of samples without others.
OnnxValue emit_segments(OnnxEmitter& e, const Segments& segments, const OnnxValue& x) {
  return e.graph.binary("Add", x, rows(e, segments, 1));
}

// A position of zeros in front, to which the token is added: operators that repeat it would need the size of the batch.
OnnxValue emit_class_token(OnnxEmitter& e, const ClassToken& token, const OnnxValue& x) {
  const Shape longer{x.shape[0], x.shape[1] + 1, x.shape[2]};
  const Tensor added = Tensor::zeros({longer[1], longer[2]});
  added.slice(0, 0, 1).copy_from(token.parameter("weight").value().to(Device::cpu()));
  const OnnxValue padded = e.graph.apply("Pad", {x, e.graph.integers({0, 1, 0, 0, 0, 0})}, longer);
  return e.graph.binary("Add", padded, e.graph.tensor(join_path(token.path(), "weight"), added));
}

OnnxValue emit_token_pool(OnnxEmitter& e, const TokenPool& layer, const OnnxValue& x) {
  if (read<TokenPoolConfig>(layer.config()).pool == "mean") return e.graph.mean(x, 1, false);
  return e.graph.gather(x, e.graph.integer(0), 1, x.shape.erase(1));
}

OnnxValue emit_transformer_block(OnnxEmitter& e, const TransformerBlock& block, const OnnxValue& x) {
  const auto child = [&](const char* name, const OnnxValue& value) { return e.emit_child(block, name, value); };
  const auto sum = [&](const OnnxValue& a, const OnnxValue& b) { return e.graph.binary("Add", a, b); };
  if (read<TransformerBlockConfig>(block.config()).norm == "last") {
    const OnnxValue y = child("norm1", sum(x, child("attn", x)));
    return child("norm2", sum(y, child("mlp", y)));
  }
  const OnnxValue y = sum(x, child("attn", child("norm1", x)));
  return sum(y, child("mlp", child("norm2", y)));
}

// x [n, heads, t, width], turned by the positions' angles (core/ops/rotary.h).
OnnxValue turned(OnnxBuilder& g, const OnnxValue& x, double base) {
  const std::int64_t t = x.shape[2], half = x.shape[3] / 2;
  const Tensor cosines = Tensor::zeros({t, half}), sines = Tensor::zeros({t, half});
  for (std::int64_t p = 0; p < t; ++p) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
      cosines.data<float>()[p * half + i] = static_cast<float>(std::cos(angle));
      sines.data<float>()[p * half + i] = static_cast<float>(std::sin(angle));
    }
  }
  const std::string tables = str("rotary/", to_json(Value(base)), '/', t, 'x', half);
  const OnnxValue cos = g.tensor(tables + "/cos", cosines), sin = g.tensor(tables + "/sin", sines);
  const std::vector<OnnxValue> halves = g.split(x, 3, {half, half});
  const OnnxValue first = g.binary("Sub", g.binary("Mul", halves[0], cos), g.binary("Mul", halves[1], sin));
  const OnnxValue second = g.binary("Add", g.binary("Mul", halves[1], cos), g.binary("Mul", halves[0], sin));
  return g.apply("Concat", {first, second}, x.shape, {{"axis", std::int64_t{3}}});
}

// Whether each query sees each key, [t, t] or [heads, t, t] of a sparse one; undefined where all do.
Tensor sight_of(const SelfAttention& layer, std::int64_t t) {
  const SelfAttentionConfig& c = layer.options();
  if (!c.causal && c.window == 0 && !c.sparse) return {};
  const std::int64_t heads = c.sparse ? c.heads : 1;
  const Tensor seen = Tensor::zeros({heads, t, t}, DType::u8);
  const AttentionForm form{.batch = 1,
                           .queries = t,
                           .keys = t,
                           .heads = heads,
                           .kv_heads = heads,
                           .width = 1,
                           .causal = c.causal,
                           .window = c.sparse ? layer.pattern()->options().band : c.window,
                           .scale = 1,
                           .block = c.sparse ? layer.pattern()->options().block : 1};
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t q = 0; q < t; ++q) {
      for (std::int64_t k = 0; k < t; ++k) {
        const bool near = k >= form.first_key(q) && k < form.end_key(q);
        const bool seen_here = near || (c.sparse && layer.pattern()->sees_beside_band(head, q, k));
        seen.data<std::uint8_t>()[(head * t + q) * t + k] = seen_here ? 1 : 0;
      }
    }
  }
  return c.sparse ? seen : seen.reshape({t, t});
}

struct Heads {
  OnnxValue q, k, v;  // [n, kv_heads, queries of each, t, width], of k and v one of each
};

Heads heads_of(OnnxEmitter& e, const SelfAttention& layer, const OnnxValue& x) {
  OnnxBuilder& g = e.graph;
  const SelfAttentionConfig& c = layer.options();
  const std::int64_t heads = c.heads, kv = c.kv_heads.value_or(heads), all = heads + 2 * kv;
  const std::int64_t n = x.shape[0], t = x.shape[1], width = x.shape[2] / all;
  const OnnxValue apart = g.permute(g.reshape(x, {n, t, all, width}), {0, 2, 1, 3});
  std::vector<OnnxValue> parts = g.split(apart, 1, {heads, kv, kv});
  if (c.rotary) {
    parts[0] = turned(g, parts[0], *c.rotary);
    parts[1] = turned(g, parts[1], *c.rotary);
  }
  parts[0] = g.binary("Mul", parts[0], g.number(1 / std::sqrt(static_cast<double>(width))));
  return {g.reshape(parts[0], {n, kv, heads / kv, t, width}), g.reshape(parts[1], {n, kv, 1, t, width}),
          g.reshape(parts[2], {n, kv, 1, t, width})};
}

// Of networks that read tokens and see those behind them too: which positions are no padding. All are without the input.
OnnxValue key_mask(OnnxEmitter& e, std::int64_t t) {
  const OnnxValue mask =
      e.graph.optional_input(kOnnxKeyMask, OnnxType::boolean, Tensor::full({1, t}, 1, DType::u8), "mask_batch");
  return e.graph.reshape(mask, {1, 1, 1, 1, t});
}

// The keys that queries see; nothing where they see all.
std::optional<OnnxValue> seen_pairs(OnnxEmitter& e, const SelfAttention& layer, const OnnxValue& q, bool masked) {
  OnnxBuilder& g = e.graph;
  const std::int64_t t = q.shape[3];
  const Tensor sight = sight_of(layer, t);
  std::optional<OnnxValue> seen;
  if (sight.defined()) {
    // Layers of one config see the same pairs.
    seen = g.tensor(str("sight/", to_json(layer.config()), '/', t), sight);
    if (sight.rank() == 3) seen = g.reshape(*seen, {1, q.shape[1], q.shape[2], t, t});
  }
  if (!masked) return seen;
  const OnnxValue mask = key_mask(e, t);
  if (!seen) return mask;
  return g.apply("And", {mask, *seen}, {1, q.shape[1], q.shape[2], t, t});
}

OnnxValue emit_self_attention(OnnxEmitter& e, const SelfAttention& layer, const OnnxValue& x) {
  OnnxBuilder& g = e.graph;
  const std::int64_t heads = layer.options().heads, n = x.shape[0], t = x.shape[1];
  const auto [q, k, v] = heads_of(e, layer, x);
  OnnxValue p = g.matmul(q, g.permute(k, {0, 1, 2, 4, 3}));
  const bool masked = e.reads_tokens && !layer.options().causal;
  const std::optional<OnnxValue> seen = seen_pairs(e, layer, q, masked);
  if (seen) p = g.apply("Where", {*seen, p, g.number(kLowest)}, p.shape);
  p = g.apply("Softmax", {p}, p.shape, {{"axis", std::int64_t{4}}});
  // A query that sees no key gets zeros.
  if (masked) p = g.apply("Where", {*seen, p, g.number(0)}, p.shape);
  const std::int64_t width = q.shape[4];
  const OnnxValue y = g.reshape(g.matmul(p, v), {n, heads, t, width});
  return g.reshape(g.permute(y, {0, 2, 1, 3}), {n, t, heads * width});
}

}  // namespace

void add_transformer_forms(OnnxForms& forms) {
  forms["layer_norm"] = form_of<LayerNorm>(emit_layer_norm);
  forms["rms_norm"] = form_of<RmsNorm>(emit_rms_norm);
  forms["positions"] = form_of<Positions>(emit_positions);
  forms["segments"] = form_of<Segments>(emit_segments);
  forms["class_token"] = form_of<ClassToken>(emit_class_token);
  forms["token_pool"] = form_of<TokenPool>(emit_token_pool);
  forms["transformer_block"] = form_of<TransformerBlock>(emit_transformer_block);
  forms["self_attention"] = form_of<SelfAttention>(emit_self_attention);
}

}  // namespace tessera

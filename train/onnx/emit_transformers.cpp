// The parts of transformers other than linear layers.
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

constexpr double kLowest = -3e38;  // score of a query and a key that it does not see
constexpr std::int64_t kNearPositions = 256;  // rows of a table of angles; two tables reach 256 x 256 positions

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

// The first `count` rows of a weight table.
OnnxValue rows(OnnxEmitter& e, const Module& owner, std::int64_t count) {
  const Tensor& table = owner.parameter("weight").value();
  return e.graph.tensor(join_path(owner.path(), "weight"), table.slice(0, 0, count));
}

OnnxValue emit_positions(OnnxEmitter& e, const Positions& positions, const OnnxValue& x) {
  const std::int64_t t = x.shape[1];
  if (!e.any_length()) return e.graph.binary("Add", x, rows(e, positions, t));
  const OnnxValue table = rows(e, positions, positions.sequence_limit());
  return e.graph.binary("Add", x, e.graph.leading(table, {0}, e.length_of(x), t));
}

// Adds the first segment's row at every position: the exported input has no segments.
OnnxValue emit_segments(OnnxEmitter& e, const Segments& segments, const OnnxValue& x) {
  return e.graph.binary("Add", x, rows(e, segments, 1));
}

// Pads one zero position in front and adds the token to it. Operators that repeat the token would need the batch size.
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

// The positions of x [n, t, ...]: 0 to t - 1, i64 [t].
OnnxValue positions_of(OnnxEmitter& e, const OnnxValue& x) {
  const std::int64_t t = x.shape[1];
  return e.once(str("positions/", t), [&] { return e.graph.range(e.length_of(x), t); });
}

struct Turns {
  OnnxValue cos, sin;
};

// cos and sin of p base^(-i / half) for p = 0, step, 2 step, ... (core/ops/rotary.h): two tables [kNearPositions, half].
Turns turn_tables(OnnxBuilder& g, double base, std::int64_t half, std::int64_t step) {
  const Tensor cosines = Tensor::zeros({kNearPositions, half}), sines = Tensor::zeros({kNearPositions, half});
  for (std::int64_t p = 0; p < kNearPositions; ++p) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p * step) * std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
      cosines.data<float>()[p * half + i] = static_cast<float>(std::cos(angle));
      sines.data<float>()[p * half + i] = static_cast<float>(std::sin(angle));
    }
  }
  const std::string name = str("rotary/", to_json(Value(base)), '/', half, '/', step);
  return {g.tensor(name + "/cos", cosines), g.tensor(name + "/sin", sines)};
}

// cos and sin at every position of x, [t, half]. A position is a multiple of kNearPositions plus a rest; their angles add up.
Turns turns_of(OnnxEmitter& e, const OnnxValue& x, double base, std::int64_t half) {
  OnnxBuilder& g = e.graph;
  const std::int64_t t = x.shape[1];
  const std::string name = str("rotary/", to_json(Value(base)), '/', half, '/', t);
  const auto rows_of = [&](const char* which, const char* op, std::int64_t step) {
    const OnnxValue row =
        e.once(str(name, '/', which, "/row"), [&] { return g.binary(op, positions_of(e, x), g.integer(kNearPositions)); });
    const auto taken = [&](const char* function, const OnnxValue& table) {
      return e.once(str(name, '/', which, '/', function), [&] { return g.gather(table, row, 0, {t, half}); });
    };
    const Turns tables = turn_tables(g, base, half, step);
    return Turns{taken("cos", tables.cos), taken("sin", tables.sin)};
  };
  const Turns far = rows_of("far", "Div", kNearPositions), near = rows_of("near", "Mod", 1);
  const auto product = [&](const OnnxValue& a, const OnnxValue& b) { return g.binary("Mul", a, b); };
  return {e.once(name + "/cos", [&] { return g.binary("Sub", product(far.cos, near.cos), product(far.sin, near.sin)); }),
          e.once(name + "/sin", [&] { return g.binary("Add", product(far.sin, near.cos), product(far.cos, near.sin)); })};
}

// Rotates x [n, heads, t, width] by the angles of its positions.
OnnxValue turned(OnnxBuilder& g, const OnnxValue& x, const Turns& turns) {
  const std::int64_t half = x.shape[3] / 2;
  const std::vector<OnnxValue> halves = g.split(x, 3, {half, half});
  const OnnxValue first = g.binary("Sub", g.binary("Mul", halves[0], turns.cos), g.binary("Mul", halves[1], turns.sin));
  const OnnxValue second = g.binary("Add", g.binary("Mul", halves[1], turns.cos), g.binary("Mul", halves[0], turns.sin));
  return g.apply("Concat", {first, second}, x.shape, {{"axis", std::int64_t{3}}});
}

// Boolean [t, t]: whether each query sees each key, without a sparse pattern.
OnnxValue near_pairs(OnnxEmitter& e, const SelfAttentionConfig& c, const OnnxValue& x) {
  OnnxBuilder& g = e.graph;
  const OnnxValue keys = positions_of(e, x);
  const OnnxValue queries = g.apply("Unsqueeze", {keys, g.integers({1})}, {x.shape[1], 1});
  const OnnxValue before_end = g.binary("Less", keys, g.binary("Add", queries, g.integer(c.causal ? 1 : c.window)));
  if (c.window == 0) return before_end;
  return g.binary("And", g.binary("Greater", keys, g.binary("Sub", queries, g.integer(c.window))), before_end);
}

// The same with a sparse pattern, [1, kv_heads, query heads per kv head, t, t].
OnnxValue pattern_pairs(OnnxEmitter& e, const SelfAttention& layer, const OnnxValue& x) {
  const SelfAttentionConfig& c = layer.options();
  const AttentionPatternOptions& pattern = layer.pattern()->options();
  const std::int64_t t = x.shape[1];
  const AttentionForm form{.batch = 1,
                           .queries = t,
                           .keys = t,
                           .heads = c.heads,
                           .kv_heads = c.heads,
                           .width = 1,
                           .causal = c.causal,
                           .window = pattern.band,
                           .scale = 1,
                           .block = pattern.block};
  const std::int64_t kv = c.kv_heads.value_or(c.heads);
  const Tensor seen = Tensor::zeros({1, kv, c.heads / kv, t, t}, DType::u8);
  auto* at = seen.data<std::uint8_t>();
  for (std::int64_t head = 0; head < c.heads; ++head) {
    for (std::int64_t q = 0; q < t; ++q) {
      for (std::int64_t k = 0; k < t; ++k) {
        const bool near = k >= form.first_key(q) && k < form.end_key(q);
        *at++ = near || layer.pattern()->sees_beside_band(head, q, k) ? 1 : 0;
      }
    }
  }
  const OnnxValue pairs = e.graph.tensor(str("sight/", to_json(layer.config()), '/', t), seen);
  return e.any_length() ? e.graph.leading(pairs, {3, 4}, e.length_of(x), t) : pairs;
}

// Nothing if all queries see all keys. Layers of equal config share the value.
std::optional<OnnxValue> seen_by_rule(OnnxEmitter& e, const SelfAttention& layer, const OnnxValue& x) {
  const SelfAttentionConfig& c = layer.options();
  if (!c.causal && c.window == 0 && !c.sparse) return std::nullopt;
  return e.once(str("seen/", to_json(layer.config()), '/', x.shape[1]),
                [&] { return c.sparse ? pattern_pairs(e, layer, x) : near_pairs(e, c, x); });
}

struct Heads {
  OnnxValue q, k, v;  // [n, kv_heads, query heads per kv head, t, width]; the third size is 1 for k and v
};

Heads heads_of(OnnxEmitter& e, const SelfAttention& layer, const OnnxValue& x) {
  OnnxBuilder& g = e.graph;
  const SelfAttentionConfig& c = layer.options();
  const std::int64_t heads = c.heads, kv = c.kv_heads.value_or(heads), all = heads + 2 * kv;
  const std::int64_t n = x.shape[0], t = x.shape[1], width = x.shape[2] / all;
  const OnnxValue apart = g.permute(g.reshape(x, {n, t, all, width}, {0, 0, all, width}), {0, 2, 1, 3});
  std::vector<OnnxValue> parts = g.split(apart, 1, {heads, kv, kv});
  if (c.rotary) {
    const Turns turns = turns_of(e, x, *c.rotary, width / 2);
    parts[0] = turned(g, parts[0], turns);
    parts[1] = turned(g, parts[1], turns);
  }
  parts[0] = g.binary("Mul", parts[0], g.number(1 / std::sqrt(static_cast<double>(width))));
  const auto grouped = [&](const OnnxValue& part, std::int64_t queries) {
    return g.reshape(part, {n, kv, queries, t, width}, {0, kv, queries, -1, width});
  };
  return {grouped(parts[0], heads / kv), grouped(parts[1], 1), grouped(parts[2], 1)};
}

// The mask of the positions that are not padding, for non-causal networks that read tokens. Without this input all are kept.
OnnxValue key_mask(OnnxEmitter& e, std::int64_t t) {
  std::vector<OnnxSize> told{"mask_batch"};
  if (e.any_length()) told.emplace_back("mask_length");
  const std::int64_t length = e.any_length() ? 1 : t;
  const OnnxValue mask = e.graph.optional_input(kOnnxKeyMask, OnnxType::boolean, Tensor::full({1, length}, 1, DType::u8), told);
  return e.graph.reshape(mask, {1, 1, 1, 1, length}, {0, 1, 1, 1, -1});
}

// The keys that each query sees; nothing if queries see all keys.
std::optional<OnnxValue> seen_pairs(OnnxEmitter& e, const SelfAttention& layer, const OnnxValue& x, bool masked) {
  const std::optional<OnnxValue> seen = seen_by_rule(e, layer, x);
  if (!masked) return seen;
  const OnnxValue mask = key_mask(e, x.shape[1]);
  return seen ? e.graph.binary("And", mask, *seen) : mask;
}

OnnxValue emit_self_attention(OnnxEmitter& e, const SelfAttention& layer, const OnnxValue& x) {
  OnnxBuilder& g = e.graph;
  const std::int64_t heads = layer.options().heads, n = x.shape[0], t = x.shape[1];
  const auto [q, k, v] = heads_of(e, layer, x);
  OnnxValue p = g.matmul(q, g.permute(k, {0, 1, 2, 4, 3}));
  const bool masked = e.reads_tokens() && !layer.options().causal;
  const std::optional<OnnxValue> seen = seen_pairs(e, layer, x, masked);
  if (seen) p = g.apply("Where", {*seen, p, g.number(kLowest)}, p.shape);
  p = g.apply("Softmax", {p}, p.shape, {{"axis", std::int64_t{4}}});
  // A query that sees no key gets zeros.
  if (masked) p = g.apply("Where", {*seen, p, g.number(0)}, p.shape);
  const std::int64_t width = q.shape[4];
  const OnnxValue y = g.reshape(g.matmul(p, v), {n, heads, t, width}, {0, heads, -1, width});
  return g.reshape(g.permute(y, {0, 2, 1, 3}), {n, t, heads * width}, {0, 0, heads * width});
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

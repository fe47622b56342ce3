// Transformers in f64 by plain ops, without the ops and layers that the library has for them: what their values and gradients are
// compared with.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/autograd/backward.h"
#include "core/nn/attention_cache.h"
#include "core/ops/arithmetic.h"
#include "core/ops/concat.h"
#include "core/ops/gelu.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/relu.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "core/ops/view.h"
#include "core/rng.h"
#include "layers/transformer_block.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {

inline Tensor normal(const Shape& shape, std::uint64_t seed, double deviation = 1) {
  const Tensor x = Tensor::empty(shape);
  fill_normal(x, RngStream(seed, "test", "transformer"), 0, deviation);
  return x;
}

inline Tensor whole_numbers(const Shape& shape, std::int64_t limit, std::uint64_t seed = 1) {
  const Tensor ids = Tensor::empty(shape, DType::i64);
  const RngStream stream(seed, "test", "ids");
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    ids.data<std::int64_t>()[i] = random_below(stream, 0, static_cast<std::uint64_t>(i), limit);
  }
  return ids;
}

// Biases that are not 0, norms that are not 1, and weights large enough for every part to matter.
inline void draw(Module& root, std::uint64_t seed) {
  for (const NamedParameter& entry : named_parameters(root)) {
    Parameter& parameter = *entry.parameter;
    const Tensor value = Tensor::empty(parameter.value().shape());
    const bool norm = parameter.role() == ParameterRole::norm && parameter.name() == "weight";
    fill_normal(value, RngStream(seed, entry.path, "draw"), norm ? 1 : 0, 0.25);
    parameter.set_value(value);
  }
}

using Parameters = std::map<std::string, Var>;  // f64 leaves, by path

inline Parameters in_f64(Module& root) {
  Parameters all;
  for (const NamedParameter& entry : named_parameters(root)) {
    all.emplace(entry.path, Var(entry.parameter->value().to(DType::f64), true));
  }
  return all;
}

inline void expect_same_gradients(Module& root, const Parameters& want, double tolerance) {
  for (const NamedParameter& entry : named_parameters(root)) {
    ASSERT_TRUE(entry.parameter->grad().defined()) << entry.path;
    EXPECT_LE(relative_error(entry.parameter->grad(), want.at(entry.path).grad()), tolerance) << entry.path;
  }
}

inline Var plain_linear(const Var& x, const Parameters& p, const std::string& path) {
  const Var y = matmul(x, p.at(path + ".weight"), {.transpose_b = true});
  return p.contains(path + ".bias") ? add(y, p.at(path + ".bias")) : y;
}

inline Var plain_norm(const Var& x, const Parameters& p, const std::string& path, double eps) {
  const bool centred = p.contains(path + ".bias");  // layer norm, else RMS norm
  const Var from = centred ? sub(x, mean(x, {-1}, true)) : x;
  const Var scaled = div(from, sqrt(add_scalar(mean(mul(from, from), {-1}, true), eps)));
  const Var y = mul(scaled, p.at(path + ".weight"));
  return centred ? add(y, p.at(path + ".bias")) : y;
}

// x [n, t, h, d] at positions 0, 1, ...: each pair (i, i + d / 2) is turned by position * base^(-2 i / d).
inline Var plain_rotary(const Var& x, double base) {
  const std::int64_t t = x.shape()[1], d = x.shape()[3];
  const Tensor cosines = Tensor::empty({t, 1, d}, DType::f64), sines = Tensor::empty({t, 1, d}, DType::f64);
  for (std::int64_t i = 0; i < t * d; ++i) {
    const double angle =
        static_cast<double>(i / d) * std::pow(base, -2.0 * static_cast<double>(i % (d / 2)) / static_cast<double>(d));
    cosines.data<double>()[i] = std::cos(angle);
    sines.data<double>()[i] = std::sin(angle);
  }
  const Var turned = concat({neg(slice(x, 3, d / 2, d)), slice(x, 3, 0, d / 2)}, 3);
  return add(mul(x, Var(cosines)), mul(turned, Var(sines)));
}

// Beside or in the band, by the units that the pattern lists.
inline bool sees(const AttentionPattern& pattern, std::int64_t head, std::int64_t query, std::int64_t key) {
  const std::int64_t side = pattern.options().block, from = query / side, to = key / side;
  const std::int64_t nearest = from == to ? 0 : (std::abs(from - to) - 1) * side + 1;
  return nearest < pattern.options().band || std::ranges::count(pattern.row(head, from), to) == 1;
}

// 0 where a query sees a key, else -1e30. [n, heads, t, t]
inline Tensor hidden_scores(std::int64_t n, std::int64_t t, const SelfAttentionConfig& config, const Tensor& key_mask) {
  std::optional<AttentionPattern> pattern;
  if (config.sparse) pattern.emplace(pattern_options(*config.sparse, config.heads, config.causal));
  const Tensor hidden = Tensor::zeros({n, config.heads, t, t}, DType::f64);
  for (std::int64_t i = 0; i < hidden.numel(); ++i) {
    const std::int64_t key = i % t, query = i / t % t, head = i / (t * t) % config.heads, sample = i / (t * t) / config.heads;
    const bool behind = config.causal && key > query;
    const bool far = pattern ? !sees(*pattern, head, query, key) : config.window > 0 && std::abs(key - query) >= config.window;
    const bool padding = key_mask.defined() && key_mask.data<std::uint8_t>()[sample * t + key] == 0;
    if (behind || far || padding) hidden.data<double>()[i] = -1e30;
  }
  return hidden;
}

// qkv [n, t, (heads + 2 kv_heads) d], f64; every query sees a key.
inline Var plain_attention(const Var& qkv, const SelfAttentionConfig& config, const Tensor& key_mask = {}) {
  const std::int64_t heads = config.heads, kv = config.kv_heads.value_or(heads), all = heads + 2 * kv;
  const std::int64_t n = qkv.shape()[0], t = qkv.shape()[1], d = qkv.shape()[2] / all;
  const Var split = reshape(qkv, {n, t, all, d});
  Var turned = slice(split, 2, 0, heads + kv);
  if (config.rotary) turned = plain_rotary(turned, *config.rotary);
  const Var values = slice(split, 2, heads + kv, all);
  const auto for_each_query_head = [&](const Var& x, std::int64_t first) {
    std::vector<Var> repeated;
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t from = first + h * kv / heads;
      repeated.push_back(slice(x, 2, from, from + 1));
    }
    return permute(concat(repeated, 2), {0, 2, 1, 3});
  };
  const Var q = permute(slice(turned, 2, 0, heads), {0, 2, 1, 3});
  const Var scores =
      mul_scalar(matmul(q, for_each_query_head(turned, heads), {.transpose_b = true}), 1 / std::sqrt(static_cast<double>(d)));
  const Var seen = softmax(add(scores, Var(hidden_scores(n, t, config, key_mask))));
  return reshape(permute(matmul(seen, for_each_query_head(values, 0)), {0, 2, 1, 3}), {n, t, heads * d});
}

inline Var plain_mlp(const Var& x, const Parameters& p, const std::string& path, const std::string& activation) {
  const Var y = plain_linear(x, p, path + ".fc1");
  const std::int64_t half = y.shape()[2] / 2;
  Var acted = y;
  if (activation == "relu") acted = relu(y);
  if (activation == "gelu") acted = gelu(y, GeluForm::erf);
  if (activation == "gelu_tanh") acted = gelu(y, GeluForm::tanh);
  if (activation == "swiglu") acted = mul(silu(slice(y, 2, 0, half)), slice(y, 2, half, 2 * half));
  return plain_linear(acted, p, path + ".fc2");
}

// Without dropout.
inline Var plain_block(const Var& x, const Parameters& p, const std::string& path, const TransformerBlockOptions& o,
                       const Tensor& key_mask = {}) {
  const std::string at = path.empty() ? "" : path + ".";
  const auto attn = [&](const Var& from) {
    return plain_linear(plain_attention(plain_linear(from, p, at + "attn.qkv"), o.attention, key_mask), p, at + "attn.out");
  };
  const auto norm = [&](const Var& from, const char* name) { return plain_norm(from, p, at + name, o.eps); };
  if (o.norm_last) {
    const Var y = norm(add(x, attn(x)), "norm1");
    return norm(add(y, plain_mlp(y, p, at + "mlp", o.activation)), "norm2");
  }
  const Var y = add(x, attn(norm(x, "norm1")));
  return add(y, plain_mlp(norm(y, "norm2"), p, at + "mlp", o.activation));
}

// What a network answers with a cache, in chunks of these sizes behind each other.
inline Tensor by_chunks(Module& network, const Tensor& x, const std::vector<std::int64_t>& sizes) {
  const NoGrad no_grad;
  AttentionCache cache(x.dim(1));
  std::vector<Var> answers;
  for (const std::int64_t size : sizes) {
    const std::int64_t first = cache.length();
    answers.push_back(network(Var(x.slice(1, first, first + size)), {.cache = &cache}));
    cache.advance(size);
  }
  return concat(answers, 1).value();
}

}  // namespace tessera::testing

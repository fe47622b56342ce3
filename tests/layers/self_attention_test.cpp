#include "layers/self_attention.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "core/nn/attention_cache.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "layers/sequential.h"
#include "tests/layers/transformer_reference.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

constexpr double kTolerance = 2e-5;  // sums in f32 against f64

struct Form {
  SelfAttentionConfig config;
  std::int64_t n, t, d;
};

std::optional<SparseAttentionConfig> pattern(std::int64_t positions, const SparseAttentionKeys& keys) {
  std::optional<SparseAttentionConfig> config = sparse_attention_of(keys, positions);
  config->seed = 3;
  return config;
}

std::vector<Form> forms() {
  return {{{.heads = 1}, 1, 1, 1},
          {{.heads = 3}, 2, 7, 5},
          {{.heads = 4, .causal = true}, 3, 11, 4},
          {{.heads = 6, .kv_heads = 2, .causal = true, .rotary = 10000}, 2, 13, 6},
          {{.heads = 2, .kv_heads = 1, .window = 3}, 1, 9, 3},
          {{.heads = 2, .causal = true, .window = 4, .rotary = 100}, 2, 17, 2},
          {{.heads = 3, .causal = true, .sparse = pattern(19, {.band = 3, .density = 0.2})}, 2, 19, 4},
          {{.heads = 4,
            .kv_heads = 2,
            .causal = true,
            .sparse = pattern(90, {.band = 5, .density = 0.3, .blocks = 16}),
            .rotary = 100},
           1,
           61,
           2},
          {{.heads = 2, .sparse = pattern(23, {.band = 2, .density = 0.1})}, 2, 17, 3},
          {{.heads = 1, .sparse = pattern(70, {.band = 1, .density = 0, .blocks = 32})}, 1, 70, 5},
          {{.heads = 2, .causal = true, .sparse = pattern(4, {.band = 9, .density = 1})}, 2, 4, 1}};
}

std::int64_t columns(const Form& form) {
  return (form.config.heads + 2 * form.config.kv_heads.value_or(form.config.heads)) * form.d;
}

Tensor padded(std::int64_t n, std::int64_t t) {
  const Tensor mask = Tensor::full({n, t}, 1, DType::u8);
  for (std::int64_t i = 0; i < n; ++i) mask.data<std::uint8_t>()[i * t + (3 * i + 2) % t] = 0;
  return mask;
}

void expect_as_plain(const Form& form, const Tensor& key_mask) {
  SelfAttention layer(form.config);
  const Tensor value = normal({form.n, form.t, columns(form)}, 3);
  const Var x(value, true), exact(value.to(DType::f64), true);
  std::vector<NamedTensor> inputs;
  if (key_mask.defined()) inputs.push_back({"key_mask", key_mask});
  const Var y = layer(x, {.inputs = inputs});
  const Var want = plain_attention(exact, form.config, key_mask);
  EXPECT_EQ(y.shape(), layer.output_shape(x.shape()));
  EXPECT_LE(relative_error(y.value(), want.value()), kTolerance);
  const Tensor grad_y = normal(y.shape(), 4);
  backward(y, grad_y);
  backward(want, grad_y.to(DType::f64));
  EXPECT_LE(relative_error(x.grad(), exact.grad()), kTolerance);
}

TEST(SelfAttention, IsThatOfPlainOps) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(to_json(write(form.config)));
    expect_as_plain(form, {});
  }
}

TEST(SelfAttention, SeesNoPadding) {
  expect_as_plain({{.heads = 3}, 2, 7, 5}, padded(2, 7));
  expect_as_plain({{.heads = 4, .kv_heads = 2}, 3, 5, 4}, padded(3, 5));
  expect_as_plain({{.heads = 2, .sparse = pattern(13, {.band = 3, .density = 0.4})}, 3, 13, 4}, padded(3, 13));
}

TEST(SelfAttention, CountsThePairsThatSeeEachOther) {
  for (const bool causal : {false, true}) {
    for (const std::int64_t window : {0, 1, 3, 4, 100}) {
      for (const std::int64_t t : {0, 1, 2, 7, 12}) {
        const SelfAttention layer({.heads = 3, .causal = causal, .window = window});
        std::int64_t pairs = 0;
        for (std::int64_t q = 0; q < t; ++q) {
          for (std::int64_t k = 0; k < t; ++k) pairs += (causal && k > q) || (window > 0 && std::abs(q - k) >= window) ? 0 : 1;
        }
        Trace trace;
        EXPECT_EQ(layer.output_shape({2, t, 9 * 5}, &trace), (Shape{2, t, 3 * 5}));
        EXPECT_EQ(trace.at(0).macs, 2 * pairs * 3 * 5) << causal << ' ' << window << ' ' << t;
        EXPECT_EQ(trace.at(0).parameters, 0);
      }
    }
  }
}

TEST(SelfAttention, CountsThePairsOfItsPattern) {
  for (const Form& form : forms()) {
    if (!form.config.sparse) continue;
    SCOPED_TRACE(to_json(write(form.config)));
    const SelfAttention layer(form.config);
    for (const std::int64_t t : {std::int64_t{0}, std::int64_t{1}, form.t / 2, form.config.sparse->positions}) {
      std::int64_t pairs = 0;
      for (const double score : hidden_scores(1, t, form.config, {}).to_vector<double>()) pairs += score == 0 ? 1 : 0;
      Trace trace;
      layer.output_shape({2, t, columns(form)}, &trace);
      EXPECT_EQ(trace.at(0).macs, 2 * pairs * form.d) << t;
    }
  }
}

TEST(SelfAttention, DrawsItsPairsOnceBySeedAndPath) {
  const auto drawn = [](std::uint64_t seed) {
    auto root = std::make_unique<Sequential>();
    for (const char* name : {"a", "b"}) {
      const SelfAttentionConfig config{.heads = 2,
                                       .sparse = sparse_attention_of(SparseAttentionKeys{.band = 2, .density = 0.2}, 40)};
      root->add_child(name, std::make_unique<SelfAttention>(config));
    }
    initialize(*root, seed);
    return root;
  };
  const auto keys = [](const Module& root, const char* name) {
    const std::span<const std::uint16_t> all = dynamic_cast<const SelfAttention&>(root.child(name)).pattern()->keys();
    return std::vector<std::uint16_t>(all.begin(), all.end());
  };
  const auto root = drawn(3);
  EXPECT_NE(keys(*root, "a"), keys(*root, "b"));
  EXPECT_EQ(keys(*drawn(3), "a"), keys(*root, "a"));
  EXPECT_NE(keys(*drawn(4), "a"), keys(*root, "a"));
  const auto again = rebuild(describe(*root), builtin_layers());
  initialize(*again, 4);
  for (const char* name : {"a", "b"}) EXPECT_EQ(keys(*again, name), keys(*root, name)) << "the seed stands in the structure";
  EXPECT_EQ(describe(*again), describe(*root));
}

SelfAttentionConfig sparse_config(std::optional<std::int64_t> seed,
                                  const SparseAttentionKeys& keys = {.band = 2, .density = 0.2}) {
  SelfAttentionConfig config{.heads = 2, .causal = true, .sparse = sparse_attention_of(keys, 40)};
  config.sparse->seed = seed;
  return config;
}

TEST(SelfAttention, CopiesOfANetworkShareThePatternAsLongAsOneOfThemIsThere) {
  auto layer = std::make_unique<SelfAttention>(sparse_config(7));
  const std::unique_ptr<Module> copy = rebuild(describe(*layer), builtin_layers());
  const AttentionPattern* const pattern = layer->pattern().get();
  EXPECT_EQ(dynamic_cast<const SelfAttention&>(*copy).pattern().get(), pattern);
  layer.reset();
  EXPECT_EQ(SelfAttention(sparse_config(7)).pattern().get(), pattern);
  for (const SelfAttentionConfig& other : {sparse_config(8), sparse_config(7, {.band = 3, .density = 0.2})}) {
    EXPECT_NE(SelfAttention(other).pattern().get(), pattern);
  }
  std::weak_ptr<const AttentionPattern> last;
  {
    const SelfAttention alone(sparse_config(9));
    last = alone.pattern();
    EXPECT_FALSE(last.expired());
  }
  EXPECT_TRUE(last.expired()) << "nothing but networks holds a pattern";
}

TEST(SelfAttention, TakesThePairsOfOneThatDrawsByTheSameKeys) {
  const SelfAttention source(sparse_config(7));
  SelfAttention drawn(sparse_config({}));
  EXPECT_TRUE(drawn.take_pairs_of(source));
  initialize(drawn, 4);
  EXPECT_EQ(drawn.options().sparse->seed, 7);
  EXPECT_EQ(drawn.pattern().get(), source.pattern().get());
  SelfAttention own(sparse_config(8)), same(sparse_config(7)), wide(sparse_config({}, {.band = 3, .density = 0.2})),
      dense({.heads = 2});
  EXPECT_FALSE(own.take_pairs_of(source)) << "it has a seed";
  EXPECT_EQ(own.options().sparse->seed, 8);
  EXPECT_TRUE(same.take_pairs_of(source));
  EXPECT_FALSE(wide.take_pairs_of(source));
  EXPECT_FALSE(wide.options().sparse->seed);
  EXPECT_FALSE(dense.take_pairs_of(source));
  EXPECT_FALSE(drawn.take_pairs_of(dense));
  EXPECT_FALSE(SelfAttention(sparse_config({})).take_pairs_of(SelfAttention(sparse_config({})))) << "neither has drawn";
}

TEST(SelfAttention, RunsItsPatternInBf16) {
  for (const Form& form : forms()) {
    if (!form.config.sparse) continue;
    SCOPED_TRACE(to_json(write(form.config)));
    SelfAttention layer(form.config);
    const Tensor value = normal({form.n, form.t, columns(form)}, 3).to(DType::bf16);
    const Var x(value, true), exact(value.to(DType::f64), true);
    const Var y = layer(x, {}), want = plain_attention(exact, form.config);
    EXPECT_EQ(y.value().dtype(), DType::bf16);
    const Tensor grad_y = normal(y.shape(), 4).to(DType::bf16);
    backward(y, grad_y);
    backward(want, grad_y.to(DType::f64));
    EXPECT_LE(relative_error(y.value(), want.value()), 0.02);  // a bf16 has 8 bits
    EXPECT_LE(relative_error(x.grad(), exact.grad()), 0.02);
  }
}

TEST(SelfAttention, DropsByStepAndPath) {
  Sequential root;
  for (const char* name : {"a", "b"}) {
    root.add_child(name, std::make_unique<SelfAttention>(SelfAttentionConfig{.heads = 2, .dropout = 0.5}));
  }
  const Var x(normal({2, 6, 12}, 1));
  StepState step;
  const Context training{.training = true, .seed = 3, .step = &step};
  const auto values = [&](const char* name, const Context& context) {
    return root.child(name)(x, context).value().to_vector<float>();
  };
  EXPECT_EQ(values("a", {}), values("b", {})) << "evaluation drops nothing";
  const auto first = values("a", training);
  EXPECT_NE(first, values("a", {}));
  EXPECT_EQ(first, values("a", training));
  EXPECT_NE(first, values("b", training));
  step.set({.step = 1});
  EXPECT_NE(first, values("a", training));
  EXPECT_EQ(message_of<InternalError>([&] { values("a", {.training = true}); }),
            "self_attention 'a': training without a step state");
}

TEST(SelfAttention, WithACacheAnswersWhatItDoesOfAllPositions) {
  for (const Form& form : forms()) {
    if (!form.config.causal) continue;
    SCOPED_TRACE(to_json(write(form.config)));
    SelfAttention layer(form.config);
    const Tensor x = normal({form.n, form.t, columns(form)}, 5);
    const Tensor whole = layer(Var(x), {}).value();
    const std::int64_t t = form.t;
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>(static_cast<std::size_t>(t), 1), {t}, {t - 3, 1, 2}, {2, t - 2}}) {
      EXPECT_LE(relative_error(by_chunks(layer, x, sizes), whole), 1e-5);
    }
  }
}

TEST(SelfAttention, RefusesWhatItCannotDo) {
  SelfAttention layer({.heads = 2});
  const Var x(normal({1, 3, 6}, 1));
  AttentionCache cache(4);
  EXPECT_EQ(message_of<ConfigError>([&] { layer(x, {.cache = &cache}); }),
            "self_attention '': not causal, so that positions change with those behind them; a cache needs causal attention");
  SelfAttention causal({.heads = 2, .causal = true});
  const std::vector<NamedTensor> masked{{"key_mask", Tensor::full({1, 3}, 1, DType::u8)}};
  EXPECT_EQ(message_of<ConfigError>([&] { causal(x, {.inputs = masked, .cache = &cache}); }),
            "self_attention '': a key mask is given beside a cache, which keeps no mask of its positions; needs one of them");
  EXPECT_EQ(message_of<InternalError>([&] { causal(x, {.cache = &cache}); }),
            "self_attention '': a cache keeps no graph, and one is recorded");
  EXPECT_EQ(message_of<ShapeError>([&] {
              layer.output_shape({1, 3, 8});
            }),
            "self_attention '': input is [1, 3, 8]; needs [n, positions, 6 head widths]");
  SelfAttention turned({.heads = 2, .rotary = 10000});
  EXPECT_EQ(message_of<ShapeError>([&] {
              turned(Var(normal({1, 3, 18}, 1)), {});
            }),
            "self_attention '': input is [1, 3, 18], a head is 3 wide; rotary positions need an even width");
  EXPECT_EQ(message_of<ConfigError>([] { SelfAttention({.heads = 4, .kv_heads = 3}); }),
            "self_attention: heads is 4, kv_heads is 3; kv_heads must divide heads");
  const std::vector<NamedTensor> inputs{{"key_mask", Tensor::full({1, 4}, 1, DType::u8)}};
  EXPECT_NE(message_of<ShapeError>([&] { layer(x, {.inputs = inputs}); }).find("key_mask is [1, 4]"), std::string::npos);
  for (const char* json : {R"({"heads": 4, "kv_heads": 3})", R"({"heads": 1048577})", R"({"heads": 0})",
                           R"({"heads": 1048577, "kv_heads": 1048577})", R"({"window": 16777217})", R"({"window": -1})",
                           R"({"sparse": {}})", R"({"sparse": {"positions": 0}})", R"({"sparse": {"positions": 4, "blocks": 8}})",
                           R"({"sparse": {"positions": 4, "density": 1.5}})", R"({"sparse": {"positions": 4, "band": 0}})",
                           R"({"sparse": {"positions": 4, "seed": -1}})", R"({"sparse": {"positions": 4}, "window": 2})",
                           R"({"sparse": {"positions": 65537}})"}) {
    EXPECT_THROW(builtin_layers().build("self_attention", parse_json(json, "test")), ConfigError) << json;
  }
}

TEST(SelfAttention, RefusesWhatItsPatternHasNot) {
  SelfAttention layer({.heads = 2, .causal = true, .sparse = pattern(4, {.band = 2})});
  EXPECT_EQ(message_of<ShapeError>([&] {
              layer.output_shape({1, 5, 6});
            }),
            "self_attention '': input is [1, 5, 6], its first position 0; the pattern has 4 positions");
  AttentionCache cache(8);
  const NoGrad no_grad;
  layer(Var(normal({1, 3, 6}, 1)), {.cache = &cache});
  cache.advance(3);
  EXPECT_EQ(message_of<ShapeError>([&] {
              layer(Var(normal({1, 2, 6}, 1)), {.cache = &cache});
            }),
            "self_attention '': input is [1, 2, 6], its first position 3; the pattern has 4 positions");
  EXPECT_EQ(message_of<ConfigError>([] { SelfAttention({.window = 2, .sparse = pattern(4, {})}); }),
            "self_attention: window is 2 and sparse is given; needs one of them");
  EXPECT_TRUE(message_of<ConfigError>([] {
                SelfAttention({.heads = 64, .sparse = pattern(65536, {.band = 1, .density = 1})});
              }).starts_with("attention pattern: each of 64 heads has 65536 rows and keeps 4294901760 pairs"));
}

TEST(SelfAttention, IsRebuiltFromItsConfig) {
  for (const Form& form : forms()) {
    const SelfAttention layer(form.config);
    EXPECT_EQ(describe(*rebuild(describe(layer), builtin_layers())), describe(layer));
  }
}

}  // namespace
}  // namespace tessera::testing

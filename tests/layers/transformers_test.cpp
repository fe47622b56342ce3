// Compares the values and gradients of the three families of transformers with plain ops.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/read.h"
#include "core/nn/attention_cache.h"
#include "core/ops/conv2d.h"
#include "core/ops/embedding.h"
#include "layers/builtin.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/models/bert.h"
#include "layers/models/gpt.h"
#include "layers/models/model.h"
#include "layers/models/transformer.h"
#include "layers/models/vit.h"
#include "layers/scores.h"
#include "tests/layers/transformer_reference.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

constexpr double kTolerance = 1e-4;  // f32 against f64, through a few blocks

std::unique_ptr<Module> gpt_of(const models::Gpt& form, const Shape& input) { return form.build(input); }
std::unique_ptr<Module> bert_of(const models::Bert& form, const Shape& input) { return form.build(input); }
std::unique_ptr<Module> vit_of(const models::Vit& form, std::int64_t classes, const Shape& input) {
  return form.build(input, classes);
}

TEST(Transformers, PathsAreThoseOfTheirParts) {
  const auto paths_of = [](Module& root) {
    std::vector<std::string> paths;
    for (const NamedParameter& entry : named_parameters(root)) paths.push_back(entry.path);
    return paths;
  };
  const std::vector<std::string> block{"norm1.weight",    "norm1.bias",    "attn.qkv.weight", "attn.qkv.bias",
                                       "attn.out.weight", "attn.out.bias", "norm2.weight",    "norm2.bias",
                                       "mlp.fc1.weight",  "mlp.fc1.bias",  "mlp.fc2.weight",  "mlp.fc2.bias"};
  const auto with = [&](std::vector<std::string> first, const std::vector<std::string>& last) {
    for (const std::string& path : block) first.push_back("blocks.0." + path);
    first.insert(first.end(), last.begin(), last.end());
    return first;
  };
  EXPECT_EQ(paths_of(*gpt_of({.layers = 1, .width = 12, .vocabulary = 5}, {1, 2})),
            with({"tokens.weight", "positions.weight"}, {"norm.weight", "norm.bias"}));
  EXPECT_EQ(paths_of(*bert_of({.layers = 1, .width = 12, .vocabulary = 5}, {1, 2})),
            with({"tokens.weight", "positions.weight", "segments.weight", "norm.weight", "norm.bias"},
                 {"head.transform.weight", "head.transform.bias", "head.norm.weight", "head.norm.bias", "head.output.bias"}));
  EXPECT_EQ(paths_of(*vit_of({.layers = 1}, 10, {1, 32, 32, 3})),
            with({"patches.conv.weight", "patches.conv.bias", "class_token.weight", "positions.weight"},
                 {"norm.weight", "norm.bias", "head.weight", "head.bias"}));
  EXPECT_EQ(paths_of(*gpt_of({.layers = 1,
                              .width = 24,
                              .vocabulary = 5,
                              .positions = "rotary",
                              .norm = "rms_norm",
                              .activation = "swiglu",
                              .bias = false,
                              .tied = false},
                             {1, 2})),
            (std::vector<std::string>{"tokens.weight", "blocks.0.norm1.weight", "blocks.0.attn.qkv.weight",
                                      "blocks.0.attn.out.weight", "blocks.0.norm2.weight", "blocks.0.mlp.fc1.weight",
                                      "blocks.0.mlp.fc2.weight", "norm.weight", "head.weight"}));
}

// Compares values and gradients of a network with those that `plain` computes from its parameters in f64.
template <class Plain>
void expect_as_plain(Module& root, const Tensor& x, const std::vector<NamedTensor>& inputs, const Plain& plain) {
  draw(root, 7);
  const Parameters exact = in_f64(root);
  const Var y = root(Var(x), {.inputs = inputs}), want = plain(exact);
  EXPECT_EQ(y.shape(), root.output_shape(x.shape()));
  EXPECT_LE(relative_error(y.value(), want.value()), kTolerance);
  const Tensor grad_y = normal(y.shape(), 4);
  backward(y, grad_y);
  backward(want, grad_y.to(DType::f64));
  expect_same_gradients(root, exact, kTolerance);
}

// Applies the blocks of `network`, each with the attention pattern that it drew.
Var plain_sparse_blocks(Var x, const Parameters& p, Module& network, TransformerBlockOptions options) {
  for (std::size_t i = 0; i < network.child("blocks").children().size(); ++i) {
    const std::string path = str("blocks.", i);
    options.attention = dynamic_cast<const SelfAttention&>(find_module(network, path + ".attn.heads")).options();
    x = plain_block(x, p, path, options);
  }
  return x;
}

Var plain_blocks(Var x, const Parameters& p, std::int64_t layers, const TransformerBlockOptions& options,
                 const Tensor& key_mask = {}) {
  for (std::int64_t i = 0; i < layers; ++i) x = plain_block(x, p, str("blocks.", i), options, key_mask);
  return x;
}

Var first_rows(const Var& table, std::int64_t count) { return slice(table, 0, 0, count); }

models::Gpt small_gpt() { return {.layers = 2, .width = 12, .heads = 3, .hidden = 17, .vocabulary = 11, .length = 9}; }

models::Gpt small_llama() {
  return {.layers = 2,
          .width = 16,
          .heads = 4,
          .kv_heads = 2,
          .hidden = 13,
          .vocabulary = 11,
          .positions = "rotary",
          .norm = "rms_norm",
          .activation = "swiglu",
          .bias = false,
          .tied = false};
}

TEST(Transformers, GptIsThatOfPlainOps) {
  const models::Gpt config = small_gpt();
  const auto gpt = gpt_of(config, {1, 9});
  const Tensor ids = whole_numbers({2, 7}, 11);
  TransformerBlockOptions options = models::block_options(config);
  options.attention.causal = true;
  options.activation = "gelu_tanh";
  expect_as_plain(*gpt, ids, {}, [&](const Parameters& p) {
    const Var x = add(embedding(ids, p.at("tokens.weight")), first_rows(p.at("positions.weight"), 7));
    const Var y = plain_norm(plain_blocks(x, p, 2, options), p, "norm", config.eps);
    return matmul(y, p.at("tokens.weight"), {.transpose_b = true});
  });
}

TEST(Transformers, ASparseGptIsThatOfPlainOps) {
  models::Gpt config = small_gpt();
  config.sparse = SparseAttentionKeys{.band = 2, .density = 0.3};
  const auto gpt = gpt_of(config, {1, 9});
  initialize(*gpt, 1);
  const Tensor ids = whole_numbers({2, 7}, 11);
  TransformerBlockOptions options = models::block_options(config);
  options.activation = "gelu_tanh";
  expect_as_plain(*gpt, ids, {}, [&](const Parameters& p) {
    const Var x = add(embedding(ids, p.at("tokens.weight")), first_rows(p.at("positions.weight"), 7));
    const Var y = plain_norm(plain_sparse_blocks(x, p, *gpt, options), p, "norm", config.eps);
    return matmul(y, p.at("tokens.weight"), {.transpose_b = true});
  });
}

TEST(Transformers, PatternsHaveThePositionsOfTheNetwork) {
  const std::optional<SparseAttentionKeys> sparse = SparseAttentionKeys{.band = 3, .density = 0.25, .blocks = 16};
  models::Gpt llama = small_llama();
  llama.sparse = sparse;
  llama.length = 40;
  const auto gpt = gpt_of({.layers = 2, .width = 12, .heads = 3, .vocabulary = 11, .sparse = sparse}, {1, 9}),
             rotary = gpt_of(llama, {1, 9});
  const auto bert = bert_of({.layers = 2, .width = 12, .heads = 3, .vocabulary = 11, .length = 9, .sparse = sparse}, {1, 9});
  const auto vit = vit_of({.layers = 2, .width = 12, .heads = 3, .patch = 3, .sparse = sparse}, 5, {1, 6, 9, 2});
  const std::pair<Module*, std::int64_t> all[] = {{gpt.get(), 1024}, {rotary.get(), 40}, {bert.get(), 9}, {vit.get(), 7}};
  for (const auto& [root, positions] : all) {
    for (const char* path : {"blocks.0.attn.heads", "blocks.1.attn.heads"}) {
      const SelfAttentionConfig& config = dynamic_cast<const SelfAttention&>(find_module(*root, path)).options();
      ASSERT_TRUE(config.sparse);
      EXPECT_EQ(config.sparse->positions, positions);
      EXPECT_EQ(static_cast<const SparseAttentionKeys&>(*config.sparse), *sparse);
      EXPECT_EQ(config.causal, positions > 9);
    }
  }
}

TEST(Transformers, LlamaIsThatOfPlainOps) {
  const models::Gpt config = small_llama();
  const auto gpt = gpt_of(config, {1, 9});
  const Tensor ids = whole_numbers({2, 7}, 11);
  TransformerBlockOptions options = models::block_options(config);
  options.attention = {.heads = 4, .kv_heads = 2, .causal = true, .rotary = 10000};
  options.activation = "swiglu";
  expect_as_plain(*gpt, ids, {}, [&](const Parameters& p) {
    const Var y = plain_norm(plain_blocks(embedding(ids, p.at("tokens.weight")), p, 2, options), p, "norm", config.eps);
    return plain_linear(y, p, "head");
  });
}

TEST(Transformers, BertIsThatOfPlainOps) {
  const models::Bert config{.layers = 2, .width = 12, .heads = 3, .hidden = 17, .vocabulary = 11, .length = 9};
  const auto bert = bert_of(config, {1, 9});
  const Tensor ids = whole_numbers({2, 7}, 11), segments = whole_numbers({2, 7}, 2, 5);
  const Tensor key_mask = Tensor::full({2, 7}, 1, DType::u8);
  key_mask.data<std::uint8_t>()[5] = key_mask.data<std::uint8_t>()[6] = 0;
  TransformerBlockOptions options = models::block_options(config);
  options.norm_last = true;
  expect_as_plain(*bert, ids, {{"tokens", ids}, {"key_mask", key_mask}, {"segments", segments}}, [&](const Parameters& p) {
    Var x = add(embedding(ids, p.at("tokens.weight")), first_rows(p.at("positions.weight"), 7));
    x = plain_norm(add(x, embedding(segments, p.at("segments.weight"))), p, "norm", config.eps);
    const Var y = gelu(plain_linear(plain_blocks(x, p, 2, options, key_mask), p, "head.transform"), GeluForm::erf);
    const Var normed = plain_norm(y, p, "head.norm", config.eps);
    return add(matmul(normed, p.at("tokens.weight"), {.transpose_b = true}), p.at("head.output.bias"));
  });
}

TEST(Transformers, VitIsThatOfPlainOps) {
  for (const char* pool : {"class_token", "mean"}) {
    SCOPED_TRACE(pool);
    const models::Vit config{.layers = 2, .width = 12, .heads = 3, .patch = 3, .pool = pool};
    const auto vit = vit_of(config, 5, {1, 6, 9, 2});
    const Tensor image = normal({2, 6, 9, 2}, 3);
    const bool token = config.pool == "class_token";
    expect_as_plain(*vit, image, {}, [&](const Parameters& p) {
      const Var pixels(image.to(DType::f64));
      Var x = conv2d(pixels, p.at("patches.conv.weight"), p.at("patches.conv.bias"), {.stride = {3, 3}});
      x = reshape(x, {2, 6, 12});
      const Var front(Tensor::zeros({2, 1, 12}, DType::f64));
      if (token) x = concat({add(front, p.at("class_token.weight")), x}, 1);
      x = plain_blocks(add(x, p.at("positions.weight")), p, 2, models::block_options(config));
      x = plain_norm(x, p, "norm", config.eps);
      return plain_linear(token ? reshape(slice(x, 1, 0, 1), {2, 12}) : mean(x, {1}), p, "head");
    });
  }
}

TEST(Transformers, ATiedTableGetsTheSumOfBothGradients) {
  models::Gpt config = small_gpt();
  const auto tied = gpt_of(config, {1, 9});
  config.tied = false;
  const auto untied = gpt_of(config, {1, 9});
  draw(*tied, 3);
  for (const NamedParameter& entry : named_parameters(*untied)) {
    const bool head = entry.path == "head.weight";
    entry.parameter->set_value(find_module(*tied, head ? "tokens" : entry.path.substr(0, entry.path.rfind('.')))
                                   .parameter(entry.parameter->name())
                                   .value());
  }
  const Var ids(whole_numbers({2, 7}, 11));
  const Tensor grad_y = normal({2, 7, 11}, 2);
  backward((*tied)(ids, {}), grad_y);
  backward((*untied)(ids, {}), grad_y);
  const Var both =
      add(Var(untied->child("tokens").parameter("weight").grad()), Var(untied->child("head").parameter("weight").grad()));
  EXPECT_LE(relative_error(tied->child("tokens").parameter("weight").grad(), both.value()), 1e-5);
}

TEST(Transformers, GenerationWithACacheAnswersAsWithoutOne) {
  for (models::Gpt config : {small_gpt(), small_llama()}) {
    for (const std::int64_t window : {0, 3, -1}) {
      config.window = std::max<std::int64_t>(window, 0);
      if (window < 0) config.sparse = SparseAttentionKeys{.band = 2, .density = 0.3};
      SCOPED_TRACE(str(config.positions, ' ', window));
      const auto gpt = gpt_of(config, {1, 9});
      initialize(*gpt, 5);
      draw(*gpt, 5);
      const Tensor ids = whole_numbers({3, 9}, 11);
      const Tensor whole = (*gpt)(Var(ids), {}).value();
      for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>(9, 1), {9}, {4, 5}, {5, 1, 1, 1, 1}, {2, 3, 4}}) {
        EXPECT_LE(relative_error(by_chunks(*gpt, ids, sizes), whole), 1e-5);
      }
    }
  }
}

TEST(Transformers, ACacheIsRefusedBeyondItsEnd) {
  const auto gpt = gpt_of(small_llama(), {1, 9});
  AttentionCache cache(4);
  const NoGrad no_grad;
  (*gpt)(Var(whole_numbers({1, 3}, 11)), {.cache = &cache});
  cache.advance(3);
  EXPECT_EQ(message_of<ShapeError>([&] {
              (*gpt)(Var(whole_numbers({1, 2}, 11)), {.cache = &cache});
            }),
            "attention_cache: 'blocks.0.attn.heads' appends 2 positions behind 3; the capacity is 4");
}

double deviation_of(const Tensor& tensor) {
  double squares = 0;
  for (const float v : tensor.to_vector<float>()) squares += double{v} * v;
  return std::sqrt(squares / static_cast<double>(tensor.numel()));
}

TEST(Transformers, InitialValuesAreThoseOfTheirSources) {
  const auto gpt = gpt_of({.layers = 8, .width = 96, .heads = 2, .vocabulary = 50, .length = 40}, {1, 8});
  const auto bert = bert_of({.layers = 1, .width = 96, .heads = 2, .vocabulary = 50, .length = 40}, {1, 8});
  const auto vit = vit_of({.layers = 1, .width = 96, .heads = 2}, 50, {1, 64, 64, 3});
  for (Module* root : {gpt.get(), bert.get(), vit.get()}) {
    initialize(*root, 1);
    for (const NamedParameter& entry : named_parameters(*root)) {
      const double deviation = deviation_of(entry.parameter->value());
      if (entry.parameter->name() == "bias") {
        EXPECT_EQ(deviation, 0) << entry.path;
      } else if (entry.parameter->role() == ParameterRole::norm) {
        EXPECT_EQ(deviation, 1) << entry.path;
      } else {
        const bool adds = entry.path.ends_with("attn.out.weight") || entry.path.ends_with("mlp.fc2.weight");
        const double want = root == gpt.get() && adds ? 0.02 / 4 : 0.02;
        EXPECT_NEAR(deviation, want, 0.15 * want) << entry.path;
      }
    }
  }
}

TEST(Transformers, RunInBf16) {
  const auto gpt = gpt_of(small_gpt(), {1, 9}), llama = gpt_of(small_llama(), {1, 9});
  const auto bert = bert_of({.layers = 1, .width = 12, .heads = 3, .vocabulary = 11, .length = 9}, {1, 9});
  const auto vit = vit_of({.layers = 1, .width = 12, .heads = 3, .patch = 3}, 5, {1, 6, 9, 2});
  for (Module* root : {gpt.get(), llama.get(), bert.get(), vit.get()}) {
    draw(*root, 3);
    const Tensor x = root == vit.get() ? normal({2, 6, 9, 2}, 3) : whole_numbers({2, 7}, 11);
    const std::vector<NamedTensor> parts{{"x", x}};
    const Tensor exact = scores(*root, parts, {}, DType::f32).value();
    const Var y = scores(*root, parts, {}, DType::bf16);
    EXPECT_EQ(y.dtype(), DType::f32);
    EXPECT_LE(relative_error(y.value(), exact), 0.1);
    EXPECT_GT(relative_error(y.value(), exact), 1e-5) << "it is rounded";
    backward(y, normal(y.shape(), 4));
    for (const NamedParameter& entry : named_parameters(*root)) {
      ASSERT_TRUE(entry.parameter->grad().defined()) << entry.path;
      EXPECT_EQ(entry.parameter->grad().dtype(), DType::f32) << entry.path;
    }
  }
}

TEST(Transformers, AreRebuiltFromTheirTrees) {
  models::Gpt sparse_llama = small_llama();
  sparse_llama.sparse = SparseAttentionKeys{};
  const auto gpt = gpt_of(small_gpt(), {1, 9}), llama = gpt_of(sparse_llama, {1, 9});
  initialize(*llama, 2);
  const auto bert = bert_of({.layers = 1, .width = 12, .heads = 3, .vocabulary = 11, .dropout = 0.1}, {1, 9});
  const auto vit = vit_of({.layers = 1, .width = 12, .heads = 3, .patch = 3, .recompute = true}, 5, {1, 6, 9, 2});
  for (Module* root : {gpt.get(), llama.get(), bert.get(), vit.get()}) {
    EXPECT_EQ(describe(*rebuild(describe(*root), builtin_layers())), describe(*root));
  }
}

TEST(Transformers, WrongInputsAndKeysAreErrors) {
  EXPECT_EQ(message_of<ShapeError>([] { gpt_of({}, {1, 28, 28, 1}); }), "gpt: input is [1, 28, 28, 1]; needs tokens [n, t]");
  EXPECT_EQ(message_of<ShapeError>([] {
              gpt_of({}, {1, 1025});
            }),
            "positions 'positions': input is [1, 1025, 768], its first position 0; there are 1024 positions");
  EXPECT_EQ(message_of<ShapeError>([] {
              vit_of({}, 10, {1, 40, 32, 3});
            }),
            "vit: input is [1, 40, 32, 3], patch is 16; the patch must divide both sides of an image");
  const auto refusal = [](const char* json) {
    return message_of<ConfigError>([&] { read<models::Gpt>(parse_json(json, "test")); });
  };
  EXPECT_EQ(refusal(R"({"heads": 5})"), "test: heads: must divide width");
  EXPECT_EQ(refusal(R"({"kv_heads": 5})"), "test: kv_heads: must divide heads");
  EXPECT_EQ(refusal(R"({"positions": "rotary", "length": 5})"),
            "test: length: rotary positions have no table; needs positions: learned, or sparse");
  EXPECT_EQ(refusal(R"({"positions": "rotary", "length": 5, "sparse": {}})"), "");
  EXPECT_EQ(refusal(R"({"window": 5, "sparse": {}})"), "test: sparse: has a band of its own; needs window: 0");
  EXPECT_EQ(refusal(R"({"sparse": {"blocks": 8}})"), "test: sparse.blocks: must be 1, 16 or 32");
  EXPECT_EQ(refusal(R"({"sparse": {"positions": 8}})").substr(0, 36), "test: sparse.positions: unknown key;");
  EXPECT_EQ(refusal(R"({"length": 100000, "sparse": {}})"),
            "test: sparse: attention pattern: positions are 100000 in blocks of 1; needs at most 65536 blocks");
  EXPECT_TRUE(
      refusal(R"({"length": 65536, "sparse": {"density": 0.5}})").starts_with("test: sparse: attention pattern: each of "));
  EXPECT_EQ(refusal(R"({"length": 100000, "sparse": {"blocks": 16}})"), "");
  EXPECT_EQ(refusal(R"({"length": 100000, "sparse": {"density": 2}})").find("attention pattern"), std::string::npos);
  EXPECT_EQ(refusal(R"({"rotary_base": 5})"), "test: rotary_base: needs positions: rotary");
  EXPECT_TRUE(refusal(R"({"window": 16777217})").starts_with("test: window: is 16777217; must be in [0, "));
  EXPECT_TRUE(refusal(R"({"kv_heads": 1048577})").starts_with("test: kv_heads: is 1048577; must be in [1, "));
  EXPECT_EQ(refusal(R"({"positions": "rotary", "width": 36})"), "test: heads: width / heads must be even for rotary positions");
  const auto of_block = [](const char* json) {
    return message_of<ConfigError>([&] { read<ModelConfig>(parse_json(json, "test")); });
  };
  EXPECT_EQ(of_block(R"({"name": "gpt2", "layers": 3})"), "test: name: gpt2 has the published sizes; name: gpt takes others");
  EXPECT_EQ(of_block(R"({"name": "bert_base", "dropout": 0.1, "recompute": true})"), "");
  EXPECT_EQ(of_block(R"({"name": "vit_ti16", "pool": "mean"})"),
            "test: name: vit_ti16 has the published sizes; name: vit takes others");
  EXPECT_THROW(read<models::Bert>(parse_json(R"({"kv_heads": 2})", "test")), ConfigError);
  EXPECT_EQ(of_block(R"({"name": "bert", "vocabulary": 9, "length": 100000, "sparse": {}})"),
            "test: sparse: attention pattern: positions are 100000 in blocks of 1; needs at most 65536 blocks");
  EXPECT_THROW(read<models::Vit>(parse_json(R"({"pool": "first"})", "test")), ConfigError);
}

TEST(Transformers, TheVocabularyDecidesWhatReadersOfTokensAnswer) {
  const auto written = [](const char* json) { return to_json(write(read<ModelConfig>(parse_json(json, "test")))); };
  const auto refusal = [&](const char* json) { return message_of<ConfigError>([&] { written(json); }); };
  EXPECT_EQ(refusal(R"({"name": "gpt", "classes": 10})"), "test: classes: the vocabulary decides what gpt answers");
  EXPECT_EQ(refusal(R"({"name": "bert", "classes": 10})"), "test: classes: the vocabulary decides what bert answers");
  EXPECT_EQ(refusal(R"({"name": "bert", "in_channels": 3})"), "test: in_channels: bert reads tokens, which have no channels");
  EXPECT_EQ(written(R"({"name": "gpt2"})").find("classes"), std::string::npos);
  EXPECT_NE(written(R"({"name": "vit"})").find(R"("classes":10)"), std::string::npos) << "written where it is not given";
  EXPECT_EQ(message_of<ConfigError>([] {
              build_model(named_model("gpt", 10), {1, 8});
            }),
            "model gpt: classes is 10; the vocabulary decides");
  EXPECT_EQ(build_model(named_model("vit"), {1, 32, 32, 3})->output_shape({2, 32, 32, 3}), (Shape{2, 10}));
}

}  // namespace
}  // namespace tessera::testing

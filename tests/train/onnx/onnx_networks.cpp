#include "tests/train/onnx/onnx_networks.h"

#include <algorithm>

#include "core/rng.h"
#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/embedding.h"
#include "layers/models/model.h"
#include "layers/residual.h"
#include "layers/residual_block.h"
#include "layers/self_attention.h"
#include "layers/sequential.h"
#include "layers/sparse_conv2d.h"
#include "layers/sparse_linear.h"
#include "tests/train/run/weights_files.h"

namespace tessera::testing {
namespace {

using Make = std::function<std::unique_ptr<Module>()>;

std::unique_ptr<Module> random_network(std::unique_ptr<Module> model) {
  randomise_weights(*model);
  return model;
}

Make of_layers(const std::string& json, const Shape& input) {
  return [=] { return random_network(build_model(layers_config(json), input)); };
}

Make of_model(const ModelConfig& config, const Shape& input) {
  return [=] { return random_network(build_model(config, input)); };
}

template <class Form>
Form small_transformer() {
  Form form;
  form.layers = 2;
  form.width = 16;
  form.heads = 4;
  return form;
}

// Masks a weight so that every third element is kept.
Tensor third_of(const Tensor& weight) {
  const Tensor mask = Tensor::zeros(weight.shape(), DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); i += 3) mask.data<std::uint8_t>()[i] = 1;
  return mask;
}

// A masked dense layer, a masked dense layer after a batch norm, and the same two as sparse layers.
std::unique_ptr<Module> sparse_network() {
  const Shape input{1, 6, 6, 3};
  auto model = build_model(layers_config(R"([{"conv2d": {"out": 5, "kernel": 3, "name": "masked"}}, "batch_norm", "relu",
      {"conv2d": {"out": 4, "kernel": 3, "name": "conv"}}, {"batch_norm": {"name": "bn"}}, "flatten",
      {"linear": {"out": 7, "name": "fc"}}])"),
                           input);
  randomise_weights(*model);
  for (const char* const name : {"masked", "conv", "fc"}) {
    Parameter& weight = model->child(name).parameter("weight");
    weight.set_mask(third_of(weight.value()));
  }
  replace_module(model, "conv", SparseConv2d::of(dynamic_cast<const Conv2d&>(model->child("conv"))));
  replace_module(model, "fc", SparseLinear::of(dynamic_cast<const Linear&>(model->child("fc"))));
  return model;
}

// Blocks that a config's list of layers cannot express.
std::unique_ptr<Module> blocks_network() {
  auto model = std::make_unique<Sequential>();
  model->add_child("plain", make_bottleneck({.in = 8, .out = 8}));
  model->add_child("wide", make_bottleneck({.in = 8, .out = 12, .stride = 2, .shortcut = "projection"}));
  auto residual = std::make_unique<Residual>(ResidualConfig{.relu = true});
  residual->add_child("body", std::make_unique<Conv2d>(Conv2dConfig{.in = 12, .out = 12, .padding = {1, 1}}));
  model->add_child("sum", std::move(residual));
  model->add_child("odd", make_basic_block({.in = 12, .out = 15, .stride = 2, .shortcut = "option_a"}));
  auto both = std::make_unique<Residual>(ResidualConfig{});
  both->add_child("body", std::make_unique<Conv2d>(Conv2dConfig{.in = 15, .out = 6, .kernel = {1, 1}}));
  both->add_child("shortcut", std::make_unique<Conv2d>(Conv2dConfig{.in = 15, .out = 6, .kernel = {1, 1}}));
  model->add_child("both", std::move(both));
  return random_network(std::move(model));
}

// Attention to nearby positions on both sides.
std::unique_ptr<Module> near_network() {
  auto model = std::make_unique<Sequential>();
  model->add_child("tokens", std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = 31, .width = 24}));
  model->add_child("attn", std::make_unique<SelfAttention>(SelfAttentionConfig{.heads = 2, .window = 3}));
  return random_network(std::move(model));
}

ModelConfig llama() {
  auto form = small_transformer<models::Gpt>();
  form.vocabulary = 31;
  form.kv_heads = 2;
  form.hidden = 24;
  form.positions = "rotary";
  form.norm = "rms_norm";
  form.activation = "swiglu";
  form.bias = false;
  form.tied = false;
  return {.form = form};
}

ModelConfig gpt(std::int64_t window, bool sparse) {
  auto form = small_transformer<models::Gpt>();
  form.vocabulary = 31;
  form.length = 12;
  form.window = window;
  form.dropout = 0.1;
  if (sparse) form.sparse = SparseAttentionKeys{.band = 2, .density = 0.3};
  return {.form = form};
}

ModelConfig gpt_in_blocks() {
  auto form = small_transformer<models::Gpt>();
  form.vocabulary = 31;
  form.length = 72;
  form.sparse = SparseAttentionKeys{.band = 5, .density = 0.3, .blocks = 16};
  return {.form = form};
}

ModelConfig bert(bool sparse) {
  auto form = small_transformer<models::Bert>();
  form.vocabulary = 31;
  form.length = 12;
  if (sparse) form.sparse = SparseAttentionKeys{.band = 2, .density = 0.3};
  return {.form = form};
}

ModelConfig vit(const std::string& pool) {
  auto form = small_transformer<models::Vit>();
  form.patch = 4;
  form.pool = pool;
  return {.form = form, .classes = 5};
}

std::string behind(const std::string& convolution) {
  return str("[", convolution, R"(, "batch_norm", "relu", "global_avg_pool", {"linear": {"out": 3}}])");
}

void add_convolutional(std::vector<OnnxNetwork>& all) {
  const auto add = [&](const char* name, const Shape& input, const std::string& json) {
    all.push_back({name, input, of_layers(json, input)});
  };
  const Shape image{1, 9, 8, 4}, small{1, 16, 16, 3};
  all.push_back({"resnet", small, of_model(named_model("resnet8", 5), small)});
  all.push_back(
      {"mobilenet", {1, 32, 32, 3}, of_model({.form = models::MobileNetV1{.width = 0.25}, .classes = 5}, {1, 32, 32, 3})});
  all.push_back({"blocks", {1, 8, 8, 8}, blocks_network});
  all.push_back({"sparse", {1, 6, 6, 3}, sparse_network});
  add("layers", image, R"([{"max_pool2d": {"kernel": 3, "stride": 2, "padding": 1}}, {"batch_norm": {"name": "alone"}}, "silu",
      {"avg_pool2d": {"kernel": 3, "stride": 2, "padding": 1}}, "identity", {"layer_norm": {}}, "sigmoid", {"linear": {"out": 6}},
      "swiglu", {"rms_norm": {}}, "flatten", "tanh", {"dropout": {}}, "batch_norm", {"gelu": {"form": "tanh"}},
      {"linear": {"out": 3}}, "gelu"])");
  add("conv", image, behind(R"({"conv2d": {"out": 6, "kernel": [3, 2], "stride": [2, 1], "padding": [1, 0], "dilation": [1, 2],
      "groups": 2}})"));
  add("epsilons", image, R"([{"batch_norm": {"eps": 0.3}}, {"layer_norm": {"eps": 0.2}}, {"rms_norm": {"eps": 0.4}}, "flatten",
      {"linear": {"out": 3}}])");
  add("image_to_image", image, R"([{"conv2d": {"out": 3, "kernel": 3}}, "relu"])");
  add("nothing", image, R"(["identity"])");
  add("pixels", image, R"(["flatten", {"linear": {"out": 3}}])");
  add("cp", image, behind(R"({"cp_conv2d": {"out": 6, "kernel": [3, 2], "stride": [2, 1], "padding": 1, "rank": 5}})"));
  add("cp_of_a_row", image, behind(R"({"cp_conv2d": {"out": 6, "kernel": [1, 3], "stride": 2, "padding": 1, "rank": 4}})"));
  add("spatial_svd", image, behind(R"({"spatial_svd_conv2d": {"out": 6, "kernel": 3, "stride": 2, "padding": 1, "rank": 5}})"));
  add("svd", image, behind(R"({"svd_conv2d": {"out": 6, "stride": 2, "rank": 3}})"));
  add("svd_with_norms", image, behind(R"({"svd_conv2d": {"out": 6, "padding": 1, "rank": 3, "batch_norm": true}})"));
  add("tucker2", image, behind(R"({"tucker2_conv2d": {"out": 6, "kernel": 3, "dilation": 2, "rank_in": 2, "rank_out": 3}})"));
  add("tt_conv", image, behind(R"({"tt_conv2d": {"out": 8, "kernel": 3, "padding": 1, "ranks": [2, 3, 3, 2]}})"));
  add("tt_garipov", {1, 7, 7, 16},
      behind(R"({"tt_garipov_conv2d": {"out": 16, "kernel": [3, 2], "in_modes": [2, 2, 2, 2], "out_modes": [2, 2, 2, 2],
             "ranks": [4, 4, 3, 2]}})"));
}

void add_linear(std::vector<OnnxNetwork>& all) {
  const Shape row{1, 24};
  const std::string json = R"([{"svd_linear": {"out": 16, "rank": 4}}, "relu",
      {"tt_linear": {"out": 24, "in_modes": [2, 2, 4], "out_modes": [3, 2, 4], "ranks": [3, 2]}}, "relu",
      {"tt_linear": {"out": 6, "in_modes": [4, 6], "out_modes": [2, 3], "ranks": [4]}}])";
  all.push_back({"linear", row, of_layers(json, row)});
  const std::string table = R"([{"tt_embedding": {"vocabulary": 29, "width": 8, "vocabulary_modes": [2, 3, 5],
      "width_modes": [2, 2, 2], "ranks": [3, 3]}},
      {"tt_linear": {"out": 6, "in_modes": [2, 4], "out_modes": [2, 3], "ranks": [2]}}, {"linear": {"out": 4}}])";
  all.push_back({"tt_embedding", {1, 5}, of_layers(table, {1, 5})});
}

void add_transformers(std::vector<OnnxNetwork>& all) {
  const Shape text{1, 10}, image{1, 8, 12, 3};
  all.push_back({"gpt", text, of_model(gpt(0, false), text)});
  all.push_back({"gpt_with_a_window", text, of_model(gpt(3, false), text)});
  all.push_back({"gpt_sparse", text, of_model(gpt(0, true), text)});
  all.push_back({"llama", text, of_model(llama(), text)});
  all.push_back({"gpt_sparse_whole", {1, 12}, of_model(gpt(0, true), {1, 12})});
  all.push_back({"near", text, near_network});
  all.push_back({"gpt_in_blocks", {1, 70}, of_model(gpt_in_blocks(), {1, 70})});
  all.push_back({"bert", text, of_model(bert(false), text)});
  all.push_back({"bert_sparse", text, of_model(bert(true), text)});
  all.push_back({"vit", image, of_model(vit("class_token"), image)});
  all.push_back({"vit_mean", image, of_model(vit("mean"), image)});
}

const OnnxNetwork& network_of(const std::string& name) {
  const auto found = std::ranges::find(onnx_networks(), name, &OnnxNetwork::name);
  TESSERA_CHECK(found != onnx_networks().end(), InternalError, "no network ", name);
  return *found;
}

}  // namespace

const std::vector<OnnxNetwork>& onnx_networks() {
  static const std::vector<OnnxNetwork> networks = [] {
    std::vector<OnnxNetwork> all;
    add_convolutional(all);
    add_linear(all);
    add_transformers(all);
    return all;
  }();
  return networks;
}

std::unique_ptr<Module> onnx_network(const std::string& name) { return network_of(name).make(); }
Shape onnx_input(const std::string& name) { return network_of(name).input; }

void randomise_weights(Module& model) {
  initialize(model, 5);
  for (const NamedParameter& entry : named_parameters(model)) {
    const Tensor& value = entry.parameter->value();
    if (value.rank() == 1) fill_uniform(value, RngStream(6, entry.path, "test"), 0.5, 1.5);
    if (entry.parameter->role() == ParameterRole::embedding) fill_normal(value, RngStream(6, entry.path, "test"), 0, 0.5);
  }
  for_each_module(model, [](Module& module) {
    if (dynamic_cast<BatchNorm*>(&module) == nullptr) return;
    for (const auto& buffer : module.buffers()) fill_uniform(buffer->value, RngStream(7, module.path(), buffer->name), 0.2, 2);
  });
}

Tensor onnx_samples(const Module& model, const Shape& input, std::int64_t count) {
  Shape shape = input;
  shape.set(0, count);
  const std::int64_t limit = model.input_limit();
  if (limit == 0) return random_input(shape);
  const Tensor tokens = Tensor::empty(shape, DType::i64);
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.data<std::int64_t>()[i] = (i * i * 7 + 3 * i + limit - 1) % limit;
  return tokens;
}

}  // namespace tessera::testing

#include "train/torch/huggingface_config.h"

#include <map>
#include <optional>
#include <utility>

#include "core/support/error.h"
#include "layers/model_tree.h"
#include "layers/models/bert.h"
#include "layers/models/gpt.h"
#include "layers/models/vit.h"

namespace tessera {
namespace {

constexpr std::string_view kHeads = "blocks.0.attn.heads";
constexpr std::string_view kAct = "blocks.0.mlp.act";

Value config_at(Module& model, std::string_view path, std::string_view key) {
  const Value config = find_module(model, path).config();
  const Value* const found = config.find(key);
  return found == nullptr ? Value() : *found;
}

const Shape& shape_at(Module& model, std::string_view path, std::string_view parameter = "weight") {
  return find_module(model, path).parameter(parameter).value().shape();
}

std::int64_t heads_of(Module& model) { return config_at(model, kHeads, "heads").as_int(); }

std::int64_t kv_heads_of(Module& model) {
  const Value kv_heads = config_at(model, kHeads, "kv_heads");
  return kv_heads.is_null() ? heads_of(model) : kv_heads.as_int();
}

std::int64_t layers_of(Module& model) { return static_cast<std::int64_t>(find_module(model, "blocks").children().size()); }
std::int64_t width_of(Module& model) { return shape_at(model, "blocks.0.attn.out")[0]; }
std::int64_t hidden_of(Module& model) { return shape_at(model, "blocks.0.mlp.fc2")[1]; }
bool is_tied(Module& model) { return find_module(model, "head").kind() == "tied_linear"; }
double eps_of(Module& model) { return config_at(model, "norm", "eps").as_double(); }

double rotary_base_of(Module& model) {
  const Value base = config_at(model, kHeads, "rotary");
  TESSERA_CHECK(!base.is_null(), ConfigError, "layer '", kHeads, "' has no rotary positions; transformers' llama has them");
  return base.as_double();
}

// The activation's name in our models: gelu, gelu_tanh, relu, swiglu.
std::string activation_of(Module& model) {
  const Module& act = find_module(model, kAct);
  const bool tanh = act.kind() == "gelu" && act.config().at("form").as_string() == "tanh";
  return str(act.kind(), tanh ? "_tanh" : "");
}

std::string theirs_of_activation(const std::string& ours) {
  const std::map<std::string, std::string> names{{"gelu_tanh", "gelu_new"}, {"swiglu", "silu"}};
  const auto found = names.find(ours);
  return found == names.end() ? ours : found->second;
}

// One name for each function that transformers knows under several names.
std::string usual_name(const std::string& activation) {
  const std::map<std::string, std::string> names{
      {"gelu_fast", "gelu_new"}, {"gelu_pytorch_tanh", "gelu_new"}, {"gelu_python", "gelu"}, {"swish", "silu"}};
  const auto found = names.find(activation);
  return found == names.end() ? activation : found->second;
}

// Since transformers 5, the settings of rotary positions are in a block of their own.
std::optional<Value> find_setting(const Value& config, const std::string& key) {
  const Value* found = config.find(key);
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    const Value* const block = config.find(name);
    if (block == nullptr || !block->is_map() || !key.starts_with("rope_")) continue;
    if (found == nullptr) found = block->find(key);
    if (found == nullptr && key == "rope_type") found = block->find("type");  // the older name of the key
  }
  if (found == nullptr || found->is_null()) return std::nullopt;
  return found->is_string() ? Value(usual_name(found->as_string())) : *found;
}

bool differ(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.as_double() != b.as_double();
  return a != b;
}

std::unique_ptr<Module> usual_gpt(bool llama, Module& model, const Shape& input) {
  models::Gpt form;
  form.layers = layers_of(model), form.width = width_of(model), form.heads = heads_of(model), form.hidden = hidden_of(model);
  form.vocabulary = shape_at(model, "tokens")[0];
  form.eps = eps_of(model);
  form.tied = is_tied(model);
  if (!llama) {
    const std::string activation = activation_of(model);
    form.length = shape_at(model, "positions")[0];
    if (activation != "swiglu") form.activation = activation;
    return form.build(input);
  }
  form.kv_heads = kv_heads_of(model);
  form.positions = std::string("rotary");
  form.rotary_base = rotary_base_of(model);
  form.norm = std::string("rms_norm");
  form.activation = std::string("swiglu");
  form.bias = false;
  return form.build(input);
}

// Our model of this type, with the sizes of `model`.
std::unique_ptr<Module> usual_network(std::string_view type, Module& model, const Shape& input) {
  if (type == "gpt2" || type == "llama") return usual_gpt(type == "llama", model, input);
  if (type == "bert") {
    models::Bert form;
    form.layers = layers_of(model), form.width = width_of(model), form.heads = heads_of(model), form.hidden = hidden_of(model);
    form.vocabulary = shape_at(model, "tokens")[0];
    form.length = shape_at(model, "positions")[0];
    form.segments = shape_at(model, "segments")[0];
    form.eps = eps_of(model);
    return form.build(input);
  }
  models::Vit form;
  form.layers = layers_of(model), form.width = width_of(model), form.heads = heads_of(model), form.hidden = hidden_of(model);
  form.patch = shape_at(model, "patches.conv")[1];
  form.eps = eps_of(model);
  return form.build(input, shape_at(model, "head")[0]);
}

// The config without what evaluation ignores: dropout, initial values and what is kept for the backward.
Value computed_config(const Module& module) {
  Value config = module.config();
  for (const char* key : {"deviation", "dropout", "recompute"}) config.erase(key);
  if (module.kind() != "self_attention") return config;
  const Value* const kv_heads = config.find("kv_heads");
  const Value as_many = kv_heads == nullptr || kv_heads->is_null() ? config.at("heads") : *kv_heads;
  config.erase("kv_heads");
  config.set("kv_heads", as_many);
  return config;
}

std::string children_of(const Module& module) {
  std::string names;
  for (const Module::Child& child : module.children()) {
    if (child.module->kind() != "dropout") names += str(names.empty() ? "" : ", ", child.name);
  }
  return names;
}

void require_same(const Module& ours, const Module& usual, std::string_view type) {
  const auto check = [&](const std::string& have, const std::string& want) {
    TESSERA_CHECK(have == want, ConfigError, "layer '", ours.path(), "' is ", have, "; that of transformers' ", type, " is ",
                  want);
  };
  check(str(ours.kind(), ' ', to_json(computed_config(ours))), str(usual.kind(), ' ', to_json(computed_config(usual))));
  check(str(ours.kind(), " of ", children_of(ours)), str(usual.kind(), " of ", children_of(usual)));
  for (const Module::Child& child : usual.children()) {
    if (child.module->kind() != "dropout") require_same(ours.child(child.name), *child.module, type);
  }
}

void add_image_sizes(Value& config, Module& model, const Shape& input) {
  const Shape patches = shape_at(model, "patches.conv");
  const Value sides = Value::list({input[1], input[2]});
  config.set("image_size", input[1] == input[2] ? Value(input[1]) : sides);
  config.set("patch_size", patches[1]);
  config.set("num_channels", patches[3]);
  Value labels = Value::map(), numbers = Value::map();
  for (std::int64_t label = 0; label < shape_at(model, "head")[0]; ++label) {
    labels.set(str(label), str("LABEL_", label));
    numbers.set(str("LABEL_", label), label);
  }
  config.set("id2label", labels);
  config.set("label2id", numbers);
}

void add_sizes(Value& config, std::string_view type, Module& model, const Shape& input) {
  const bool gpt2 = type == "gpt2";
  config.set(gpt2 ? "n_layer" : "num_hidden_layers", layers_of(model));
  config.set(gpt2 ? "n_embd" : "hidden_size", width_of(model));
  config.set(gpt2 ? "n_inner" : "intermediate_size", hidden_of(model));
  if (type == "vit") return add_image_sizes(config, model, input);
  config.set("vocab_size", shape_at(model, "tokens")[0]);
  config.set("tie_word_embeddings", type == "bert" || is_tied(model));
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) config.set(token, Value());
  if (type == "bert") config.set("type_vocab_size", shape_at(model, "segments")[0]);
  if (type != "llama") config.set(gpt2 ? "n_positions" : "max_position_embeddings", shape_at(model, "positions")[0]);
}

}  // namespace

std::string_view huggingface_type(const Module& model) {
  TESSERA_CHECK(model.has_child("blocks") && (model.has_child("patches") || model.has_child("tokens")), ConfigError,
                "Hugging Face's layout has names for gpt, bert and vit; the network consists of ", children_of(model));
  if (model.has_child("patches")) return "vit";
  if (model.has_child("segments")) return "bert";
  return model.has_child("positions") ? "gpt2" : "llama";
}

Value huggingface_settings(std::string_view type, Module& model) {
  Value settings = Value::map();
  settings.set("model_type", type);
  settings.set(type == "gpt2" ? "n_head" : "num_attention_heads", heads_of(model));
  settings.set(type == "gpt2" ? "layer_norm_epsilon" : type == "llama" ? "rms_norm_eps" : "layer_norm_eps", eps_of(model));
  settings.set(type == "gpt2" ? "activation_function" : "hidden_act", theirs_of_activation(activation_of(model)));
  if (type == "gpt2") {
    settings.set("scale_attn_weights", true);
    settings.set("scale_attn_by_inverse_layer_idx", false);
  }
  if (type == "bert") settings.set("is_decoder", config_at(model, kHeads, "causal"));
  if (type != "llama") return settings;
  settings.set("num_key_value_heads", kv_heads_of(model));
  settings.set("rope_theta", rotary_base_of(model));
  settings.set("rope_type", "default");
  return settings;
}

std::vector<std::string> differing_settings(const Value& config, const Value& settings) {
  std::vector<std::string> lines;
  for (const Value::Entry& entry : settings.as_map()) {
    const std::optional<Value> theirs = find_setting(config, entry.key);
    if (!theirs || !differ(*theirs, entry.value)) continue;
    lines.push_back(str(entry.key, " is ", to_json(*theirs), ", the network's is ", to_json(entry.value)));
  }
  return lines;
}

Value huggingface_config(std::string_view type, Module& model, const Shape& input) {
  require_same(model, *usual_network(type, model, input), type);
  const std::map<std::string_view, const char*> architectures{{"bert", "BertForMaskedLM"},
                                                              {"gpt2", "GPT2LMHeadModel"},
                                                              {"llama", "LlamaForCausalLM"},
                                                              {"vit", "ViTForImageClassification"}};
  Value config = Value::map();
  config.set("architectures", Value::list({architectures.at(type)}));
  const Value settings = huggingface_settings(type, model);
  Value rotary = Value::map();
  for (const Value::Entry& entry : settings.as_map()) {
    (entry.key.starts_with("rope_") ? rotary : config).set(entry.key, entry.value);
  }
  if (type == "llama") config.set("rope_parameters", rotary);
  add_sizes(config, type, model, input);
  config.set("dtype", "float32");
  return config;
}

}  // namespace tessera

// config.json of transformers for our GPT, BERT and ViT: sizes, and what no tensor's shape shows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"
#include "core/nn/module.h"

namespace tessera {

inline constexpr const char* kHuggingFaceConfig = "config.json";

// model_type: "vit" of a network with patches, "bert" of one with segments, else "gpt2" with learned positions and "llama"
// without.
std::string_view huggingface_type(const Module& model);

// What no shape shows, by its key in config.json: heads, epsilon, activation, how attention scales and what it sees, the base of
// rotary positions. Throws ConfigError where the network lacks the layers of `type` that say it.
Value huggingface_settings(std::string_view type, Module& model);
// "n_head is 12, the network's is 8" for each setting that a config.json has otherwise. Earlier names of activations and earlier
// places of the base of rotary positions are understood. A setting that the config.json does not have is not compared.
std::vector<std::string> differing_settings(const Value& config, const Value& settings);

// The whole of config.json for inputs of this shape, [n, t] or [n, h, w, c]. Throws ConfigError naming the layer where
// transformers' network of this type computes something else; dropout and initial values do not count.
Value huggingface_config(std::string_view type, Module& model, const Shape& input);

}  // namespace tessera

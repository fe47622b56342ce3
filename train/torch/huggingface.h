// The tensors of our GPT, BERT and ViT under the names that transformers gives them: GPT-2, Llama, BERT for masked tokens, ViT
// for image classification. Only names and shapes are looked at, no module. config.json: train/torch/huggingface_config.h.
//
// q, k and v are one matrix here and three in transformers, except in GPT-2, which has one; its matrices are [in, out]. Gate and
// up of Llama's MLP are one matrix here. A head that repeats the table of tokens is stored once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "train/torch/torch_layout.h"

namespace tessera {

// How a file spells the names; the values here are what transformers writes today.
struct HuggingFaceNames {
  std::string_view type;  // model_type of config.json: "bert", "gpt2", "llama", "vit"
  bool prefix = true;  // "transformer.h.0...", or "h.0..." of a network saved without its head
  bool gamma = false;  // LayerNorm.gamma and .beta, or .weight and .bias
};

// What the names of a file say; none where it is no such file.
std::optional<HuggingFaceNames> huggingface_names(const std::map<std::string, Tensor>& file);

// `ours` has the shape of each parameter and buffer by its path. Throws ConfigError listing the tensors that have no name there:
// those of factored layers, and of another kind of network.
FileLayout huggingface_layout(const HuggingFaceNames& names, const std::map<std::string, Shape>& ours);

}  // namespace tessera

// Language models that read from left to right: GPT-2 (Radford et al., 2019, "Language models are unsupervised multitask
// learners") and Llama (Touvron et al., 2023).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/config/fields.h"
#include "core/nn/module.h"
#include "layers/sparse_attention_config.h"

namespace tessera::models {

// Tokens [n, t] -> [n, t, vocabulary]. Children: tokens, positions (learned ones), dropout (where there is one), blocks, norm,
// head. The defaults, and gpt2, are GPT-2's smallest network, 124,439,808 parameters. Llama's blocks: norm rms_norm, activation
// swiglu, positions rotary, bias false, tied false, with a hidden of its own and fewer kv_heads. Initial values are those of
// GPT-2 as Hugging Face's transformers draws them (GPT2PreTrainedModel._init_weights): weights and tables N(0, 0.02^2), those of
// out and fc2 N(0, 0.02^2 / (2 layers)), so that the sum over the blocks does not grow with their number; biases 0.
struct Gpt {
  static constexpr std::array<std::string_view, 2> kNames{"gpt", "gpt2"};
  static constexpr std::int64_t kLength = 1024;  // without a length
  std::string name = "gpt";
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::optional<std::int64_t> kv_heads = {};  // heads without it
  std::optional<std::int64_t> hidden = {};  // 4 width without it
  std::int64_t vocabulary = 50257;
  std::string positions = "learned";  // or rotary
  std::optional<std::int64_t> length = {};  // learned: rows of their table; sparse: of the pattern; kLength without it
  std::optional<double> rotary_base = {};  // rotary: 10000 without it
  std::int64_t window = 0;
  std::optional<SparseAttentionKeys> sparse = {};  // in place of a window
  std::string norm = "layer_norm";  // or rms_norm
  double eps = 1e-5;
  std::string activation = "gelu_tanh";  // gelu, gelu_tanh, relu, swiglu
  bool bias = true;  // of the linear layers
  bool tied = true;  // the head reads the table of the tokens
  double dropout = 0;  // of embeddings, probabilities of attention, and what branches add
  bool recompute = false;
  void fields(Fields& f);  // of gpt2 sizes are the defaults, and others are refused
  std::optional<Shape> usual_input() const { return Shape{1, length.value_or(kLength)}; }
  friend bool operator==(const Gpt&, const Gpt&) = default;
  // Throws ShapeError unless input is [n, t] with a t that positions hold.
  std::unique_ptr<Module> build(const Shape& input) const;
};

}  // namespace tessera::models

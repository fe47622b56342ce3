// A block of a transformer: attention, then a network of two layers at each position, each added to what it read.
// norm first (Xiong et al., 2020; GPT-2, Llama, ViT): y = x + attn(norm1(x)), result y + mlp(norm2(y)).
// norm last (Vaswani et al., 2017; BERT): y = norm1(x + attn(x)), result norm2(y + mlp(y)). x [n, t, width] -> the same shape.
#pragma once

#include <memory>
#include <string>

#include "layers/init.h"
#include "layers/self_attention.h"

namespace tessera {

struct TransformerBlockConfig {
  std::string norm = "first";
  // Keeps the block's input alone, and computes the rest again in the backward (core/autograd/recompute.h). The bytes are the
  // same.
  bool recompute = false;
  void fields(Fields& f);
};

// Children: norm1; attn, a sequence of qkv, heads (self_attention) and out; norm2; mlp, a sequence of fc1, act and fc2; a dropout
// ends both sequences where there is one. Built as a shell: children come from make_transformer_block or a checkpoint's tree.
class TransformerBlock final : public Module {
 public:
  using Config = TransformerBlockConfig;
  explicit TransformerBlock(const TransformerBlockConfig& config) : config_(config) {}

  std::string_view kind() const override { return "transformer_block"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;  // throws ShapeError where a sum does not fit
  std::vector<std::string> needed_children() const override { return {"norm1", "attn", "norm2", "mlp"}; }

 private:
  Var computed(const Var& x, const Context& context) const;

  TransformerBlockConfig config_;
};

struct TransformerBlockOptions {
  bool norm_last = false;
  bool recompute = false;
  std::int64_t width = 1;
  std::int64_t hidden = 1;  // between fc1 and fc2; fc1 of swiglu makes twice as many
  SelfAttentionConfig attention = {};
  std::string activation = "gelu";  // gelu, gelu_tanh, relu, swiglu
  std::string norm = "layer_norm";  // or rms_norm
  double eps = 1e-5;
  bool bias = true;  // of the four linear layers
  double dropout = 0;  // of what attn and mlp add
  double deviation = kInitialDeviation;  // of the initial weights of the linear layers, but for out and fc2:
  double last_deviation = kInitialDeviation;
};
// Throws ConfigError unless heads divides width, and on an unknown activation or norm.
std::unique_ptr<TransformerBlock> make_transformer_block(const TransformerBlockOptions& options);

std::unique_ptr<Module> make_norm(std::string_view kind, std::int64_t channels, double eps);  // layer_norm or rms_norm

}  // namespace tessera

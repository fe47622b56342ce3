// An encoder of text that learns from masked tokens (Devlin et al., 2019, "BERT"), with the head that names them.
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

// Tokens [n, t], beside the inputs "segments" and "key_mask" where there are such -> [n, t, vocabulary]. Children: tokens,
// positions, segments, norm, dropout (where there is one), blocks, and head, a sequence of transform, act, norm and output, which
// reads the table of the tokens and has a bias of its own. The defaults, and bert_base, are bert-base-uncased: an encoder of
// 108,891,648 parameters without a pooler, and a head of 622,650 beside the table.
// Initial values are those of BERT's code (modeling.py, initializer_range 0.02): weights and tables N(0, 0.02^2), biases 0. It
// cuts its normal numbers at two deviations; these are not cut, as in Hugging Face's BertPreTrainedModel.
struct Bert {
  static constexpr std::array<std::string_view, 2> kNames{"bert", "bert_base"};
  std::string name = "bert";
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::optional<std::int64_t> hidden = {};  // 4 width without it
  std::int64_t vocabulary = 30522;
  std::int64_t length = 512;  // positions of the longest sequence
  std::int64_t segments = 2;
  std::optional<SparseAttentionKeys> sparse = {};
  double eps = 1e-12;
  double dropout = 0;
  bool recompute = false;
  void fields(Fields& f);  // of bert_base sizes are the defaults, and others are refused
  std::optional<Shape> usual_input() const { return Shape{1, length}; }
  friend bool operator==(const Bert&, const Bert&) = default;
  // Throws ShapeError unless input is [n, t] with a t that positions hold.
  std::unique_ptr<Module> build(const Shape& input) const;
};

}  // namespace tessera::models

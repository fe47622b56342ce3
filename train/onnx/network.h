// A trained network as an ONNX model.
#pragma once

#include <map>
#include <string>

#include "core/nn/module.h"
#include "train/onnx/graph.h"

namespace tessera {

inline constexpr const char* kOnnxScores = "scores";
inline constexpr const char* kOnnxSparsity = "tessera.sparsity";

struct OnnxOptions {
  bool keep_batch_norm = false;  // otherwise norms behind convolutions are folded into them (layers/fold.h)
};

// What the network answers in evaluation, in f32. `input` is that of one sample: images [1, h, w, c] are the graph's input
// "image", whole numbers [1, t] its "tokens", rows of numbers its "x"; its output is "scores". The first axis of each is the
// batch, of any size. Tokens may have any length up to what the network can read, and scores of each token have the same length,
// unless the network has a layer (flatten, class_token, a sparse attention with more positions) that takes only one length. A
// network that reads tokens and also attends to those after a position has an input "key_mask", boolean [n, t], false where
// there is padding; where it is not given there is no padding. Factored layers are the chains of operators that they compute,
// sparse ones dense with their zeros. A metadata entry "tessera.sparsity", where there are masks, is a JSON map from an
// initialiser to {elements, kept, mask}: the mask in base64, element i of the initialiser in bit i % 8, from the lowest, of byte
// i / 8. Throws ConfigError naming a layer whose kind has no form in ONNX, NumericError naming a tensor that holds NaN or Inf,
// before or behind folding.
OnnxGraph onnx_graph(Module& network, const Shape& input, const OnnxOptions& options = {});

std::string base64(std::string_view bytes);  // RFC 4648, section 4

}  // namespace tessera

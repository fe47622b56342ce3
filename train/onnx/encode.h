// The file of an ONNX model: a ModelProto of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
#pragma once

#include <string>
#include <vector>

#include "train/onnx/graph.h"

namespace tessera {

inline constexpr int kOnnxOpset = 13;
inline constexpr int kOnnxIr = 7;  // the version of the format

// The bytes of `text`, followed by those of `values` where it is defined. `values` is a tensor of the graph and is not copied.
struct OnnxPiece {
  std::string text;
  Tensor values = {};
};

// A model of opset 13 and version 7 of the format, which runtimes have read since 2020: its pieces one behind the other are the
// file. `producer` is the program's version. Throws ConfigError where the model would be larger than the 2 GiB that a file holds.
std::vector<OnnxPiece> encode_onnx(const OnnxGraph& graph, const std::string& producer);

}  // namespace tessera

// The file of an ONNX model: a ModelProto of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
#pragma once

#include <string>

#include "train/onnx/graph.h"

namespace tessera {

inline constexpr int kOnnxOpset = 13;
inline constexpr int kOnnxIr = 7;  // the version of the format

// The bytes of a model of opset 13 and version 7 of the format, which runtimes have read since 2020. `producer` is the program's
// version. Throws ConfigError where the model would be larger than the 2 GiB that a file holds.
std::string encode_onnx(const OnnxGraph& graph, const std::string& producer);

}  // namespace tessera

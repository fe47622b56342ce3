// The file of an ONNX model, by Debian's libonnx-dev, where this build has it.
#pragma once

#include <string>

#include "train/onnx/graph.h"

namespace tessera {

inline constexpr int kOnnxOpset = 13;
inline constexpr int kOnnxIr = 7;  // the version of the format

bool has_onnx() noexcept;

// The bytes of a model, which ONNX's own checker accepts: of opset 13 and version 7 of the format, which runtimes have read since
// 2020. `producer` is the program's version. Throws ConfigError without libonnx, and where the model would be larger than the
// 2 GiB that a file holds, InternalError on a graph that the checker refuses.
std::string encode_onnx(const OnnxGraph& graph, const std::string& producer);

}  // namespace tessera

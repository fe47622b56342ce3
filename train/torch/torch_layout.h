// A module tree's tensors as PyTorch names and lays them out, for importers and exporters: images NCHW, convolution weights
// [out, in/groups, kh, kw], and behind a flatten the features of an image in the order (c, h, w) where ours have (h, w, c).
// Hugging Face's names for the same are in train/torch/huggingface.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/nn/module.h"

namespace tessera {

enum class TorchAxes {
  same,
  convolution,  // ours [out, kh, kw, in] <-> [out, in, kh, kw]
  flattened,  // last axis: ours (pixels, channels) <-> (channels, pixels)
  transposed,  // ours [out, in] <-> [in, out]
  three,  // ours [..., width] <-> [1, ..., width] of three axes
};

struct TorchTensor {
  std::string path;  // ours: "layer1.0.conv2.in_factor"
  std::string name;  // PyTorch's: "layer1.0.conv2.0.weight"
  TorchAxes axes = TorchAxes::same;
  std::int64_t channels = 1;  // flattened only
  std::int64_t first = 0;  // the file's holds `rows` rows of ours along its first axis, from this one on
  std::int64_t rows = 0;  // 0: all
};

// How a file names a network's tensors.
struct FileLayout {
  std::string title;  // for messages: "PyTorch's names, convolutions OIHW"
  std::vector<TorchTensor> tensors = {};
  std::map<std::string, std::string> repeats = {};  // tensors that another one of the file stands for: equal to it, or absent
  std::function<bool(const std::string& name)> ignores = {};  // tensors that the network does without; none when empty
  std::string ignored = {};  // what these are
};

// Every parameter and buffer of the tree, for inputs of shape [n, h, w, c] or [n, features]. Compressed layers name
// their parts (layers/compressed.h). Throws ConfigError naming the layer where there is no PyTorch counterpart: a kind that is
// not listed here, a linear layer or layer norm over the channels of an image, a linear tensor train behind a flattened image, a
// flatten inside a block or at the network's end.
std::vector<TorchTensor> torch_tensors(const Module& root, const Shape& input);

// Views where strides can express it. The shape decides nothing: all throw ShapeError when it does not fit the axes.
// from_torch() gives the layout's rows alone. With `three` its result keeps the axes of size 1; a reshape brings it to our
// shape.
Tensor to_torch(const Tensor& ours, const TorchTensor& layout);
Tensor from_torch(const Tensor& torch, const TorchTensor& layout);
Shape torch_shape(const Shape& ours, const TorchTensor& layout);

}  // namespace tessera

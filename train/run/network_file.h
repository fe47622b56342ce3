// A network in one safetensors file: its tensors in our layout and, in the metadata, the module tree that they fill and the input
// that it takes. Any reader of safetensors finds the tensors; `model: {name: saved, weights: FILE}` loads the whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/config/value.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/nn/module.h"

namespace tessera {

inline constexpr const char* kLayoutKey = "tessera.layout";  // OHWI: ours, OIHW: PyTorch's
inline constexpr const char* kNetworkKey = "tessera.network";  // JSON of describe() (layers/model_tree.h)
inline constexpr const char* kInputKey = "tessera.input";  // JSON, [1, h, w, c] or [1, features]

// The file's bytes, with a checksum. `input` is that of one sample.
std::string encode_network(Module& model, const Shape& input);
// Atomically. Returns the size of the file in bytes.
std::int64_t write_network(Vfs& vfs, Module& model, const Shape& input, const std::filesystem::path& path);

// The module tree, none in a file of tensors alone. Throws IoError naming `origin` when it is no JSON.
std::optional<Value> tree_of(const SafetensorsFile& file, const std::string& origin);
// The input of one sample, likewise. Throws IoError when it is no list of positive sizes, or one of more than 2^40
// elements, either.
std::optional<Shape> input_of(const SafetensorsFile& file, const std::string& origin);

}  // namespace tessera

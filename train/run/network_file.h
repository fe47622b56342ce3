// A network in one safetensors file: its tensors in our layout and, in the metadata, the module tree that they fill and the input
// that it takes; where it is from a run, also what answers with it (tessera predict). Any reader of safetensors finds the
// tensors; `model: {name: saved, weights: FILE}` loads the whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/config/fields.h"
#include "core/config/value.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/nn/module.h"

namespace tessera {

inline constexpr const char* kLayoutKey = "tessera.layout";  // OHWI: ours, OIHW: PyTorch's
inline constexpr const char* kNetworkKey = "tessera.network";  // JSON of describe() (layers/model_tree.h)
inline constexpr const char* kInputKey = "tessera.input";  // JSON, [1, h, w, c] or [1, features]

inline constexpr const char* kUseKey = "tessera.use";  // JSON of NetworkUse

// What a program needs beside a network to have it answer.
struct NetworkUse {
  std::string task;  // that it learnt (train/tasks/builtin.h)
  std::string precision = "f32";  // that the run computed in
  Value data = Value::map();  // what the data set says of its samples and of the answers: keys_of_export() of the run
  Value decisions = Value::map();  // to_value() of the choices of a clock (train/run/decisions_file.h)

  void fields(Fields& f);
};

// The file's bytes, with a checksum. `input` is that of one sample.
std::string encode_network(Module& model, const Shape& input, const std::optional<NetworkUse>& use = {});
// Atomically. Returns the size of the file in bytes.
std::int64_t write_network(Vfs& vfs, Module& model, const Shape& input, const std::filesystem::path& path,
                           const std::optional<NetworkUse>& use = {});

// The module tree, none in a file of tensors alone. Throws IoError naming `origin` when it is no JSON.
std::optional<Value> tree_of(const SafetensorsFile& file, const std::string& origin);
// The input of one sample, likewise. Throws IoError when it is no list of positive sizes, or one of more than 2^40
// elements, either.
std::optional<Shape> input_of(const SafetensorsFile& file, const std::string& origin);
// What it was trained for, none in a file that is not from a run. Throws IoError naming `origin` on any other keys.
std::optional<NetworkUse> use_of(const SafetensorsFile& file, const std::string& origin);

}  // namespace tessera

// Networks spelled out in JSON and weight files of any content, for the tests of import and export.
#pragma once

#include <string>

#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/rng.h"
#include "layers/models/model.h"
#include "train/run/model_state.h"

namespace tessera::testing {

inline ModelConfig layers_config(const std::string& json) {
  return {.form = models::LayerList{.layers = parse_json(json, "test")}};
}

// 0, 1, 2, ...: every element tells where it came from.
inline Tensor counting(const Shape& shape) {
  const Tensor tensor = Tensor::empty(shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data<float>()[i] = static_cast<float>(i);
  return tensor;
}

inline void save(const std::filesystem::path& path, const SafetensorsFile& file) {
  write_file_atomically(real_vfs(), path, encode_safetensors(file));
}

// Values of every tensor, statistics included, that no default has: fresh batch norms do nothing.
inline void randomise(Module& model) {
  initialize(model, 5);
  for (const NamedParameter& entry : named_parameters(model)) {
    if (entry.parameter->value().rank() == 1) fill_uniform(entry.parameter->value(), RngStream(6, entry.path, "test"), 0.5, 1.5);
  }
  for (const NamedBuffer& entry : named_buffers(model))
    fill_uniform(entry.buffer->value, RngStream(7, entry.path, "test"), 0.2, 2);
}

inline Tensor random_input(const Shape& shape) {
  const Tensor x = Tensor::empty(shape);
  fill_normal(x, RngStream(8, "test", "x"), 0, 1);
  return x;
}

}  // namespace tessera::testing

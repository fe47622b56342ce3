// What model.weights names, read as it lies there: tensors under the names of the file.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/tensor.h"
#include "train/run/network_file.h"
#include "train/torch/huggingface.h"

namespace tessera {

struct WeightsSource {
  std::string name;  // for messages: the file
  std::map<std::string, Tensor> tensors;
  bool torch = false;  // names and axes of PyTorch or Hugging Face; else ours
  std::optional<Value> tree = {};  // the network's, where the source holds it
  std::optional<Shape> input = {};  // likewise
  std::optional<NetworkUse> use = {};  // of a file that a run's network was written to
  std::optional<HuggingFaceNames> huggingface = {};  // of a file with Hugging Face's names
  std::optional<Value> huggingface_config = {};  // the config.json beside it, a map
};

// A run folder, or a file. Throws ConfigError where there is none.
WeightsSource read_weights(Vfs& vfs, const std::string& path);
// A safetensors file; inside a checkpoint it must be what the checkpoint's manifest says. Throws ConfigError on a pickle and on
// an unknown layout, IoError on what cannot be read.
WeightsSource read_weights_file(Vfs& vfs, const std::string& path);

}  // namespace tessera

// The network that a run starts from: the `model` block built, drawn from the seed and, when it names weights, filled from them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/io/vfs.h"
#include "layers/models/model.h"
#include "train/run/network_file.h"

namespace tessera {

struct InitialModel {
  std::unique_ptr<Module> model;
  std::string imported;  // one line on what came from where; "" when all weights are drawn
  std::optional<NetworkUse> use;  // where the weights' file tells it
};

// `input` is [n, h, w, c] as for build_model. `config.weights` is one of
// - a run folder: the model of its newest good checkpoint;
// - a safetensors file of ours, metadata tessera.layout OHWI: our names, convolutions [out, kh, kw, in], masks;
// - any other safetensors file, tessera.layout OIHW or absent: a PyTorch state dict (train/torch/torch_layout.h). Only the
//   metadata decides, never a shape. `num_batches_tracked` of a batch norm is ignored.
// A file inside a checkpoint must match the checkpoint's manifest, and a file with a checksum (core/io/safetensors.h) must match
// that. Every tensor of the network must be there and no other; f16 and bf16 become f32 exactly, f64 rounded to nearest; other
// dtypes do not fit. NaN and Inf, after this conversion, are refused unless config.allow_nonfinite. With `head: reset` the last
// layer that has parameters, a linear layer or a convolution, keeps its drawn values, whatever the file says of it. Throws
// ConfigError with one line per missing, unexpected, mismatched and non-finite tensor; IoError on files that cannot be read; and
// what build_model throws.
// The structure of a model `saved` is that of the run's checkpoint, or of a file that holds one (train/run/network_file.h).
// In any other model, sparse attention without a seed of its own takes the pairs of the layer at the same path in such a
// structure, where that layer has the same keys, heads and positions. Otherwise, and without a structure, its pairs are drawn
// from `seed`.
InitialModel initial_model(Vfs& vfs, const ModelConfig& config, const Shape& input, std::uint64_t seed);

// The same for those who train nothing with it: throws ConfigError, too, where sparse attention sees other pairs than those that
// config.weights tells, or where that tells none.
InitialModel trained_model(Vfs& vfs, const ModelConfig& config, const Shape& input);

// The network of a file that holds one, and the input that it says. Throws ConfigError on any other file and where the network
// takes no such input, and what initial_model() throws; all messages name the file.
struct FileNetwork {
  std::unique_ptr<Module> model;
  Shape input;  // of one sample
  std::optional<NetworkUse> use;  // where the file tells it
};
FileNetwork file_network(Vfs& vfs, const std::string& path);

// Its structure alone, without values.
std::unique_ptr<Module> empty_model(Vfs& vfs, const ModelConfig& config, const Shape& input);

}  // namespace tessera

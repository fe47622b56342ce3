// Named networks, and networks spelled out layer by layer, from the `model:` block of an experiment file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct ModelConfig {
  std::string name = "mlp";
  std::int64_t classes = 10;
  std::optional<std::int64_t> in_channels = {};  // channels of the data when absent; a number that differs is an error
  std::vector<std::int64_t> hidden = {};  // mlp only: widths of its hidden layers; {256, 128} when empty
  std::string shortcut = {};  // CIFAR resnets only: "option_a" (when empty) or "projection"
  // CIFAR resnets and mobilenet_v1: factor of the channels of every layer between the images and the classes; 1
  std::optional<double> width = {};
  // name: layers only: the list itself, e.g. [{conv2d: {out: 32, kernel: 3, padding: 1}}, relu, flatten, {linear: {out: 10}}].
  // `in` and `channels` come from the running shape; `name` names a layer, which is "0", "1", ... without one.
  Value layers = {};
  // Where the values come from instead of the seed (train/run/import_weights.h): a safetensors file or a run folder; "" = drawn.
  // name: saved takes the structure from there too.
  std::string weights = {};
  std::string head = "keep";  // keep: every layer comes from the weights; reset: the last one is drawn
  bool allow_nonfinite = false;  // take NaN and Inf from the weights
  void fields(Fields& f);
};

std::vector<std::string_view> model_names();

// The channels of a layer that has `channels` at width 1: max(1, round(width channels)), halves away from zero.
std::int64_t scaled_channels(const ModelConfig& config, std::int64_t channels);

// The name of a network whose structure stands beside its weights; build_model() cannot make it.
inline constexpr std::string_view kSavedModel = "saved";

// One image of the data set that a named network was made for, [1, h, w, c]: MNIST, CIFAR or ImageNet. Empty for `layers`,
// `saved` and unknown names.
std::optional<Shape> usual_input(std::string_view name);

// The network for inputs of shape [n, h, w, c] (mlp and layers: any [n, ...]); n does not matter. Parameters are not drawn
// yet: call initialize(). Throws ConfigError on an unknown name and on keys that the model cannot follow, ShapeError on an
// input that it cannot take.
std::unique_ptr<Module> build_model(const ModelConfig& config, const Shape& input);

}  // namespace tessera

// Named networks, and networks spelled out layer by layer, from the `model:` block of an experiment file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/config/fields.h"
#include "core/nn/module.h"
#include "layers/models/bert.h"
#include "layers/models/gpt.h"
#include "layers/models/networks.h"
#include "layers/models/vit.h"

namespace tessera {

// A form of the block: a family of networks with the keys that it alone has. Its names stand as core/config/forms.h says. It has
//   void fields(Fields&)
//   std::optional<Shape> usual_input() const   one sample of the data that it was made for; none where it takes many
//   std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const
// or, where its member `vocabulary` decides what it answers, build(const Shape& input): it takes neither classes nor in_channels.
using ModelForm = std::variant<models::Mlp, models::LeNet5, models::CifarResNet, models::ImageNetResNet, models::Vgg16,
                               models::MobileNetV1, models::Vit, models::Gpt, models::Bert, models::LayerList, models::Saved>;

struct ModelConfig {
  ModelForm form = {};
  std::optional<std::int64_t> classes = {};  // 10 without it; a config that was read has it, unless the vocabulary decides
  std::optional<std::int64_t> in_channels = {};  // channels of the data when absent; a number that differs is an error
  // Where the values come from instead of the seed (train/run/import_weights.h): a safetensors file or a run folder; "" = drawn.
  // name: saved takes the structure from there too.
  std::string weights = {};
  std::string head = "keep";  // keep: every layer comes from the weights; reset: the last one is drawn
  bool allow_nonfinite = false;  // take NaN and Inf from the weights
  void fields(Fields& f);

  std::string_view name() const { return form_name(form); }
};

// The defaults of a name. Throws ConfigError naming the nearest ones where it is none.
ModelConfig named_model(std::string_view name, std::optional<std::int64_t> classes = {});
std::vector<std::string_view> model_names();

// The name of a network whose structure stands beside its weights; build_model() cannot make it.
inline constexpr std::string_view kSavedModel = models::Saved::kName;

// One sample of the data that the network was made for, [1, ...]; none for `layers` and `saved`.
std::optional<Shape> usual_input(const ModelConfig& config);

// The network for inputs of shape [n, h, w, c] (mlp and layers: any [n, ...]); n does not matter. Parameters are not drawn
// yet: call initialize(). Throws ConfigError on keys that the model cannot follow, ShapeError on an input that it cannot take.
std::unique_ptr<Module> build_model(const ModelConfig& config, const Shape& input);

}  // namespace tessera

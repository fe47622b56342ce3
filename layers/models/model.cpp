#include "layers/models/model.h"

#include <algorithm>
#include <cmath>

#include "core/config/suggest.h"
#include "core/support/error.h"
#include "layers/models/networks.h"

namespace tessera {

namespace {

using Build = std::unique_ptr<Module> (*)(const ModelConfig&, const Shape&);

template <std::int64_t kDepth>
std::unique_ptr<Module> cifar(const ModelConfig& config, const Shape& input) {
  return models::cifar_resnet(config, input, kDepth);
}

std::unique_ptr<Module> saved(const ModelConfig&, const Shape&) {
  throw ConfigError(str("model ", kSavedModel, ": its structure is read with its weights"));
}

struct Images {
  std::int64_t side = 0;
  std::int64_t channels = 0;
};
constexpr Images kMnist{28, 1};
constexpr Images kCifar{32, 3};
constexpr Images kImageNet{224, 3};

struct NamedModel {
  std::string_view name;
  Build build;
  Images images;  // of the data set that it was made for; none = 0
  bool takes_shortcut = false;
  bool takes_width = false;
};

constexpr NamedModel kModels[] = {
    {"layers", &models::layer_list, {}},
    {"lenet5", &models::lenet5, kMnist},
    {"mlp", &models::mlp, kMnist},
    {"mobilenet_v1", &models::mobilenet_v1, kImageNet, false, true},
    {"resnet110", &cifar<110>, kCifar, true, true},
    {"resnet18", &models::resnet18, kImageNet},
    {"resnet20", &cifar<20>, kCifar, true, true},
    {"resnet32", &cifar<32>, kCifar, true, true},
    {"resnet44", &cifar<44>, kCifar, true, true},
    {"resnet50", &models::resnet50, kImageNet},
    {"resnet56", &cifar<56>, kCifar, true, true},
    {"resnet8", &cifar<8>, kCifar, true, true},
    {kSavedModel, &saved, {}},
    {"vgg16", &models::vgg16, kImageNet},
};

const NamedModel* find_model(std::string_view name) {
  const auto* found = std::find_if(std::begin(kModels), std::end(kModels), [&](const NamedModel& m) { return m.name == name; });
  return found == std::end(kModels) ? nullptr : found;
}

[[noreturn]] void throw_unknown(std::string_view name) {
  std::string message = str("unknown model '", name, "'");
  for (const std::string& near : nearest_names(name, model_names())) message += str("; did you mean '", near, "'?");
  message += "; known:";
  for (const std::string_view known : model_names()) message += str(' ', known);
  throw ConfigError(message);
}

// "resnet110, resnet20, ..."
std::string models_with_width() {
  std::string names;
  for (const NamedModel& model : kModels) {
    if (model.takes_width) names += str(names.empty() ? "" : ", ", model.name);
  }
  return names;
}

}  // namespace

std::int64_t scaled_channels(const ModelConfig& config, std::int64_t channels) {
  return std::max<std::int64_t>(1, std::llround(config.width.value_or(1) * static_cast<double>(channels)));
}

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const NamedModel& model : kModels) names.push_back(model.name);
  return names;
}

std::optional<Shape> usual_input(std::string_view name) {
  const NamedModel* const model = find_model(name);
  if (model == nullptr || model->images.side == 0) return std::nullopt;
  return Shape{1, model->images.side, model->images.side, model->images.channels};
}

void ModelConfig::fields(Fields& f) {
  f.add("name", name,
        {.help = "the network; saved: as the weights have it",
         .choices = model_names(),
         .example = "resnet20",
         .observable = "plan"});
  f.add("classes", classes,
        {.help = "outputs of the last layer; a list's own last layer decides for name: layers, the weights' for name: saved",
         .range = at_least(1),
         .example = "100",
         .observable = "plan"});
  f.add("in_channels", in_channels,
        {.help = "channels the images must have; another number is an error",
         .range = at_least(1),
         .example = "3",
         .observable = "none: it is checked against the images"});
  f.add("hidden", hidden,
        {.help = "mlp: widths of the hidden layers", .range = at_least(1), .example = "[256, 128]", .observable = "plan"});
  f.add("shortcut", shortcut,
        {.help = "resnet8 to resnet110: option_a has no parameters, projection is a 1x1 convolution",
         .choices = {"", "option_a", "projection"},
         .observable = "plan"});
  f.add("width", width,
        {.help = "resnet8 to resnet110, mobilenet_v1: factor of the channels of every layer but input and classes, rounded, 1 at "
                 "least",
         .range = {.min = 0, .max = 16, .open_min = true},
         .example = "0.5",
         .observable = "plan"});
  f.add("layers", layers,
        {.help = "name: layers: the layers in order",
         .example = "[{conv2d: {out: 32}}, relu]",
         .observable = "plan",
         .check = &models::check_layer_list});
  f.add("weights", weights,
        {.help = "start from a trained network: a .safetensors file or a run folder, relative to this file; see name: saved",
         .example = "resnet18.safetensors",
         .observable = "bytes"});
  f.add("head", head,
        {.help = "with weights: keep takes every layer from them, reset draws the last one anew",
         .choices = {"keep", "reset"},
         .observable = "bytes"});
  f.add("allow_nonfinite", allow_nonfinite,
        {.help = "with weights: take NaN and Inf as they are instead of refusing them", .observable = "plan"});
  const NamedModel* model = find_model(name);
  f.require(hidden.empty() || name == "mlp", "hidden", "only name: mlp has hidden widths");
  f.require(shortcut.empty() || model == nullptr || model->takes_shortcut, "shortcut", "only the CIFAR resnets have a choice");
  f.require(!width || model == nullptr || model->takes_width, "width",
            str(name, " has one width; those that take another: ", models_with_width()));
  f.require(layers.is_null() || name == "layers", "layers", "needs name: layers");
  f.require(!layers.is_null() || name != "layers", "layers", "name: layers needs the list of layers");
  f.require(!weights.empty() || name != kSavedModel, "weights", "name: saved needs the weights that hold the network");
  f.require(!in_channels || name != kSavedModel, "in_channels", "the weights of name: saved say it");
  f.require(head == "keep" || !weights.empty(), "head", "reset needs weights; without them every layer is drawn");
  f.require(!allow_nonfinite || !weights.empty(), "allow_nonfinite", "needs weights");
}

std::unique_ptr<Module> build_model(const ModelConfig& config, const Shape& input) {
  const NamedModel* model = find_model(config.name);
  if (model == nullptr) throw_unknown(config.name);
  TESSERA_CHECK(!config.in_channels || (input.rank() > 1 && input.dim(-1) == *config.in_channels), ConfigError, "model ",
                config.name, ": in_channels is ", *config.in_channels, ", the data is ", input, "; the last axis must agree");
  return model->build(config, input);
}

}  // namespace tessera

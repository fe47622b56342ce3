// The forms of the `model:` block: families of networks, each with the keys that it alone has. Each returns a sequential whose
// children carry the names of the original or of torchvision. What a form has is in layers/models/model.h.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera::models {

// flatten, fc1, relu1, fc2, ..., fcN: a perceptron over all inputs.
struct Mlp {
  static constexpr const char* kName = "mlp";
  std::vector<std::int64_t> hidden = {};  // widths of its hidden layers; {256, 128} when empty
  void fields(Fields& f);
  std::optional<Shape> usual_input() const { return Shape{1, 28, 28, 1}; }
  std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const;
};

// LeNet-5 (LeCun et al. 1998) with relu and max pooling: conv1, conv2, fc1, fc2, fc3. conv1 pads 28x28 images to 32x32.
struct LeNet5 {
  static constexpr const char* kName = "lenet5";
  void fields(Fields&) {}
  std::optional<Shape> usual_input() const { return Shape{1, 28, 28, 1}; }
  std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const;
};

// CIFAR networks of depth 6n + 2 (He et al. 2015, section 4.2) with 16, 32 and 64 channels times the width: conv1, bn1,
// layer1.0.conv1, ..., fc.
struct CifarResNet {
  static constexpr std::array<std::string_view, 6> kNames{"resnet8", "resnet20", "resnet32", "resnet44", "resnet56", "resnet110"};
  std::string name = "resnet20";
  std::string shortcut = {};  // "option_a" (when empty) or "projection"
  std::optional<double> width = {};  // factor of the channels of every layer between the images and the classes; 1
  void fields(Fields& f);
  std::optional<Shape> usual_input() const { return Shape{1, 32, 32, 3}; }
  std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const;
};

// ImageNet networks as in torchvision (v1.5: a bottleneck's stride is on its 3x3 convolution): 18 or 50 layers.
struct ImageNetResNet {
  static constexpr std::array<std::string_view, 2> kNames{"resnet18", "resnet50"};
  std::string name = "resnet18";
  void fields(Fields&) {}
  std::optional<Shape> usual_input() const { return Shape{1, 224, 224, 3}; }
  std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const;
};

// VGG-16 with batch norm (Simonyan and Zisserman 2014), torchvision's features.N and classifier.N. Where the feature map is
// 7x7 (224x224 images) the classifier is the original 25088-4096-4096-classes, behind a flatten in HWC order: torchvision's
// classifier.0 columns, CHW, need a permutation. On any other map size it is the usual small-image variant: a global average
// and 512-512-512-classes.
struct Vgg16 {
  static constexpr const char* kName = "vgg16";
  void fields(Fields&) {}
  std::optional<Shape> usual_input() const { return Shape{1, 224, 224, 3}; }
  std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const;
};

// MobileNet v1 (Howard et al. 2017, table 1): conv1, bn1, layer1 to layer13 = depthwise, bn1, relu1, pointwise, bn2, relu2; fc.
struct MobileNetV1 {
  static constexpr const char* kName = "mobilenet_v1";
  std::optional<double> width = {};  // the paper's width multiplier; 1
  void fields(Fields& f);
  std::optional<Shape> usual_input() const { return Shape{1, 224, 224, 3}; }
  std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const;
};

// A list of layers, each `kind` or `{kind: {settings}}`: [{conv2d: {out: 32, kernel: 3, padding: 1}}, relu, flatten, {linear:
// {out: 10}}]. `in` and `channels` come from the running shape; `name` names a layer, which is "0", "1", ... without one. The
// last layer decides about the classes. Building throws ConfigError on every fault of the list and on a rule that an inferred
// size breaks, ShapeError on layers that do not fit together.
struct LayerList {
  static constexpr const char* kName = "layers";
  Value layers = {};
  void fields(Fields& f);
  std::optional<Shape> usual_input() const { return std::nullopt; }
  std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const;
};

// Structure and values are the weights' (train/run/import_weights.h); building it throws.
struct Saved {
  static constexpr const char* kName = "saved";
  void fields(Fields&) {}
  std::optional<Shape> usual_input() const { return std::nullopt; }
  std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const;
};

}  // namespace tessera::models

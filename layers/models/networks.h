// The builders behind build_model. Each returns a sequential whose children carry the names of the original or of torchvision.
#pragma once

#include "layers/models/model.h"

namespace tessera::models {

// flatten, fc1, relu1, fc2, ..., fcN: a perceptron over all inputs.
std::unique_ptr<Module> mlp(const ModelConfig& config, const Shape& input);

// LeNet-5 (LeCun et al. 1998) with relu and max pooling: conv1, conv2, fc1, fc2, fc3. conv1 pads 28x28 images to 32x32.
std::unique_ptr<Module> lenet5(const ModelConfig& config, const Shape& input);

// CIFAR networks of depth 6n + 2 (He et al. 2015, section 4.2) with 16, 32 and 64 channels times config.width: conv1, bn1,
// layer1.0.conv1, ..., fc.
std::unique_ptr<Module> cifar_resnet(const ModelConfig& config, const Shape& input, std::int64_t depth);
// ImageNet networks as in torchvision (v1.5: a bottleneck's stride is on its 3x3 convolution): 18 or 50 layers.
std::unique_ptr<Module> resnet18(const ModelConfig& config, const Shape& input);
std::unique_ptr<Module> resnet50(const ModelConfig& config, const Shape& input);

// VGG-16 with batch norm (Simonyan and Zisserman 2014), torchvision's features.N and classifier.N. Where the feature map is
// 7x7 (224x224 images) the classifier is the original 25088-4096-4096-classes, behind a flatten in HWC order: torchvision's
// classifier.0 columns, CHW, need a permutation. On any other map size it is the usual small-image variant: a global average
// and 512-512-512-classes.
std::unique_ptr<Module> vgg16(const ModelConfig& config, const Shape& input);

// MobileNet v1 (Howard et al. 2017, table 1; config.width is the paper's width multiplier): conv1, bn1, layer1 to layer13 =
// depthwise, bn1, relu1, pointwise, bn2, relu2; fc.
std::unique_ptr<Module> mobilenet_v1(const ModelConfig& config, const Shape& input);

// config.layers: a list of `kind` or `{kind: {settings}}`; sizes of the input are inferred. Throws ConfigError on every fault
// that check_layer_list finds, on a rule that an inferred size breaks, ShapeError on layers that do not fit together.
std::unique_ptr<Module> layer_list(const ModelConfig& config, const Shape& input);

// What can be said of the list without knowing its input: every fault of every item, with `path` in front.
void check_layer_list(const Value& list, std::string_view path, std::vector<ConfigProblem>& problems);

}  // namespace tessera::models

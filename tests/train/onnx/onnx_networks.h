// Small networks which together have every kind of layer, for the tests of ONNX.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/nn/module.h"

namespace tessera::testing {

struct OnnxNetwork {
  std::string name;
  Shape input;  // of one sample
  std::function<std::unique_ptr<Module>()> make = {};
};
// With weights that no default has, and masks.
const std::vector<OnnxNetwork>& onnx_networks();
std::unique_ptr<Module> onnx_network(const std::string& name);
Shape onnx_input(const std::string& name);

// Parameters and statistics that no default has; masks stay.
void randomise_weights(Module& model);

// So many samples: tokens of the network's vocabulary, or normal numbers.
Tensor onnx_samples(const Module& model, const Shape& input, std::int64_t count);

}  // namespace tessera::testing

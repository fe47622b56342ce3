// What the formats whose layer is a FactoredConv2d have in common (layers/factored_conv2d.h).
#pragma once

#include <memory>

#include "compress/formats/format.h"
#include "layers/conv2d.h"

namespace tessera {

// A form of convolutions of one group whose kernel is larger than 1x1.
class LargerConvFormat : public Format {
 public:
  std::span<const std::string_view> kinds() const override;
  std::string why_not(const DenseLayer& layer) const override;
};

// The layer of this config, with the dense one's bias and trainability, and with factors in the order of its filters; undefined
// ones are left out.
template <class Layer>
std::unique_ptr<Module> factored_conv(const DenseLayer& dense, const typename Layer::Config& config, const Factors* factors) {
  auto layer = std::make_unique<Layer>(config);
  layer->take_traits(dynamic_cast<const Conv2d&>(*dense.module));
  if (factors == nullptr) return layer;
  Factors defined;
  for (const Tensor& factor : *factors) {
    if (factor.defined()) defined.push_back(factor);
  }
  layer->set_factors(defined);
  return layer;
}

const Conv2dConfig& conv_of(const DenseLayer& dense);

}  // namespace tessera

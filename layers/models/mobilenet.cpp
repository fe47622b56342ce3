#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/models/chain.h"
#include "layers/models/networks.h"
#include "layers/pool2d.h"

namespace tessera::models {

namespace {

struct Separable {
  std::int64_t out;
  std::int64_t stride;
};
constexpr Separable kLayers[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                                 {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};

std::unique_ptr<Module> separable(Chain chain, std::int64_t out, std::int64_t stride) {
  const std::int64_t in = chain.features();
  chain.conv("depthwise",
             {.out = in, .kernel = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}, .groups = in, .bias = false});
  chain.batch_norm("bn1").add<Relu>("relu1");
  chain.conv("pointwise", {.out = out, .kernel = {1, 1}, .bias = false});
  return chain.batch_norm("bn2").add<Relu>("relu2").finish();
}

}  // namespace

void MobileNetV1::fields(Fields& f) { width_field(f, width); }

std::unique_ptr<Module> MobileNetV1::build(const Shape& input, std::int64_t classes) const {
  require_images(input, "mobilenet_v1");
  Chain chain(input);
  chain.conv("conv1", {.out = scaled_channels(width, 32), .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .bias = false});
  chain.batch_norm("bn1").add<Relu>("relu");
  int index = 0;
  for (const Separable& layer : kLayers) {
    const std::int64_t out = scaled_channels(width, layer.out);
    chain.add(str("layer", ++index), separable(Chain(chain.shape()), out, layer.stride));
  }
  return chain.add<GlobalAvgPool>("avgpool").linear("fc", classes).finish();
}

}  // namespace tessera::models

#include "layers/activation.h"
#include "layers/flatten.h"
#include "layers/models/chain.h"
#include "layers/models/networks.h"
#include "layers/pool2d.h"

namespace tessera::models {

std::unique_ptr<Module> LeNet5::build(const Shape& input, std::int64_t classes) const {
  require_images(input, "lenet5");
  const std::int64_t padding = input.dim(1) == 28 ? 2 : 0;
  Chain chain(input);
  chain.conv("conv1", {.out = 6, .kernel = {5, 5}, .padding = {padding, padding}}).add<Relu>("relu1").add<MaxPool2d>("pool1");
  chain.conv("conv2", {.out = 16, .kernel = {5, 5}}).add<Relu>("relu2").add<MaxPool2d>("pool2");
  chain.add<Flatten>("flatten").linear("fc1", 120).add<Relu>("relu3").linear("fc2", 84).add<Relu>("relu4");
  return chain.linear("fc3", classes).finish();
}

}  // namespace tessera::models

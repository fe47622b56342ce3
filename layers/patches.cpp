#include "layers/patches.h"

#include "core/ops/view.h"
#include "layers/conv2d.h"

namespace tessera {

Var Patches::forward(const Var& x, const Context& context) {
  const Var y = child("conv")(x, context);
  return reshape(y, {y.shape()[0], y.shape()[1] * y.shape()[2], y.shape()[3]});
}

Shape Patches::output_shape(const Shape& input, Trace* trace) const {
  const Shape image = child("conv").output_shape(input, trace);
  TESSERA_CHECK(image.rank() == 4, ShapeError, "patches '", path(), "': conv gives ", image, "; needs [n, h, w, width]");
  return {image[0], image[1] * image[2], image[3]};
}

std::unique_ptr<Patches> make_patches(std::int64_t channels, std::int64_t width, std::int64_t side, double deviation) {
  auto patches = std::make_unique<Patches>();
  patches->add_child("conv",
                     std::make_unique<Conv2d>(Conv2dConfig{
                         .in = channels, .out = width, .kernel = {side, side}, .stride = {side, side}, .deviation = deviation}));
  return patches;
}

}  // namespace tessera

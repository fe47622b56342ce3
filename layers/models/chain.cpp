#include "layers/models/chain.h"

#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/linear.h"

namespace tessera::models {

Chain& Chain::add(std::string name, std::unique_ptr<Module> module) {
  shape_ = root_->add_child(std::move(name), std::move(module)).output_shape(shape_);
  return *this;
}

Chain& Chain::conv(std::string name, Conv2dConfig config) {
  config.in = features();
  return add<Conv2d>(std::move(name), config);
}

Chain& Chain::batch_norm(std::string name) { return add<BatchNorm>(std::move(name), {.channels = features()}); }

Chain& Chain::linear(std::string name, std::int64_t out) { return add<Linear>(std::move(name), {.in = features(), .out = out}); }

void require_images(const Shape& input, const char* model) {
  TESSERA_CHECK(input.rank() == 4, ShapeError, model, ": input is ", input, "; needs images [n, h, w, c]");
}

}  // namespace tessera::models

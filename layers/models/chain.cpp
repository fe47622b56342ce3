#include "layers/models/chain.h"

#include <algorithm>
#include <cmath>

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

void width_field(Fields& f, std::optional<double>& width) {
  f.add("width", width,
        {.help = "factor of the channels of every layer but input and classes, rounded, 1 at least",
         .range = {.min = 0, .max = 16, .open_min = true},
         .example = "0.5",
         .observable = "plan"});
}

std::int64_t scaled_channels(std::optional<double> width, std::int64_t channels) {
  return std::max<std::int64_t>(1, std::llround(width.value_or(1) * static_cast<double>(channels)));
}

void require_images(const Shape& input, const char* model) {
  TESSERA_CHECK(input.rank() == 4, ShapeError, model, ": input is ", input, "; needs images [n, h, w, c]");
}

}  // namespace tessera::models

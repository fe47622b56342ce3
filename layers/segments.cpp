#include "layers/segments.h"

#include "core/config/read.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/embedding.h"
#include "core/ops/view.h"
#include "layers/embedding.h"
#include "layers/init.h"

namespace tessera {

void SegmentsConfig::fields(Fields& f) {
  f.add("types", types, {.help = "how many segments there are", .range = at_least(1), .example = "3", .observable = "plan"});
  f.add("width", width, {.help = "features of each", .range = at_least(1), .example = "768", .observable = "plan"});
}

Segments::Segments(const SegmentsConfig& config)
    : config_(config), weight_(add_parameter("weight", Tensor::zeros({config.types, config.width}), ParameterRole::embedding)) {}

Value Segments::config() const { return write(config_); }

Var Segments::forward(const Var& x, const Context& context) {
  const Tensor* const segments = context.find("segments");
  if (segments == nullptr) return add(x, cast(slice(weight_.var(), 0, 0, 1), x.dtype()));
  TESSERA_CHECK(x.shape().rank() == 3 && segments->shape() == x.shape().erase(2), ShapeError, "segments '", path(), "': x is ",
                x.shape(), ", the input segments is ", segments->shape(), "; needs [n, positions, ", config_.width,
                "] and [n, positions]");
  return add(x, cast(embedding(*segments, weight_.var()), x.dtype()));
}

Shape Segments::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() == 3 && input[2] == config_.width, ShapeError, "segments '", path(), "': input is ", input,
                "; needs [n, positions, ", config_.width, "]");
  trace_leaf(trace, input, input, 0);
  return input;
}

void Segments::reset_parameters(std::uint64_t seed) {
  init_normal(weight_, RngStream(seed, path(), "weight"), kInitialDeviation);
}

}  // namespace tessera

#include "layers/positions.h"

#include "core/config/read.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/view.h"
#include "layers/embedding.h"
#include "layers/init.h"

namespace tessera {

void PositionsConfig::fields(Fields& f) {
  f.add("length", length,
        {.help = "positions of the longest sequence", .range = at_least(1), .example = "1024", .observable = "plan"});
  f.add("width", width, {.help = "features of each", .range = at_least(1), .example = "768", .observable = "plan"});
}

Positions::Positions(const PositionsConfig& config)
    : config_(config), weight_(add_parameter("weight", Tensor::zeros({config.length, config.width}), ParameterRole::embedding)) {}

Value Positions::config() const { return write(config_); }

void Positions::check(const Shape& input, std::int64_t first) const {
  TESSERA_CHECK(input.rank() == 3 && input[2] == config_.width, ShapeError, "positions '", path(), "': input is ", input,
                "; needs [n, positions, ", config_.width, "]");
  TESSERA_CHECK(input[1] <= config_.length - first, ShapeError, "positions '", path(), "': input is ", input,
                ", its first position ", first, "; there are ", config_.length, " positions");
}

Var Positions::forward(const Var& x, const Context& context) {
  const std::int64_t first = context.first_position();
  check(x.shape(), first);
  return add(x, cast(slice(weight_.var(), 0, first, first + x.shape()[1]), x.dtype()));
}

Shape Positions::output_shape(const Shape& input, Trace* trace) const {
  check(input, 0);
  trace_leaf(trace, input, input, 0);
  return input;
}

void Positions::reset_parameters(std::uint64_t seed) {
  init_normal(weight_, RngStream(seed, path(), "weight"), kInitialDeviation);
}

}  // namespace tessera

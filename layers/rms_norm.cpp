#include "layers/rms_norm.h"

#include "core/config/read.h"
#include "core/ops/rms_norm.h"
#include "layers/init.h"

namespace tessera {

void RmsNormConfig::fields(Fields& f) {
  f.add("channels", channels, {.help = "size of the last axis", .range = at_least(1), .example = "256", .observable = "plan"});
  f.add("eps", eps, {.help = "added to the mean square", .range = positive});
}

RmsNorm::RmsNorm(const RmsNormConfig& config)
    : config_(config), weight_(add_parameter("weight", Tensor::full({config.channels}, 1), ParameterRole::norm)) {}

Value RmsNorm::config() const { return write(config_); }

Var RmsNorm::forward(const Var& x, const Context&) { return rms_norm(x, weight_.var(), config_.eps); }

Shape RmsNorm::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 1 && input.dim(-1) == config_.channels, ShapeError, "rms_norm '", path(), "': input is ", input,
                "; needs [..., ", config_.channels, "]");
  trace_leaf(trace, input, input, 0);
  return input;
}

void RmsNorm::reset_parameters(std::uint64_t) { init_constant(weight_, 1); }

}  // namespace tessera

#include "layers/layer_norm.h"

#include "core/config/read.h"
#include "core/ops/layer_norm.h"
#include "layers/init.h"

namespace tessera {

void LayerNormConfig::fields(Fields& f) {
  f.add("channels", channels, {.help = "size of the last axis", .range = at_least(1), .example = "256", .observable = "plan"});
  f.add("eps", eps, {.help = "added to the variance", .range = positive});
}

LayerNorm::LayerNorm(const LayerNormConfig& config)
    : config_(config),
      weight_(add_parameter("weight", Tensor::full({config.channels}, 1), ParameterRole::norm)),
      bias_(add_parameter("bias", Tensor::zeros({config.channels}), ParameterRole::norm)) {}

Value LayerNorm::config() const { return write(config_); }

Var LayerNorm::forward(const Var& x, const Context&) { return layer_norm(x, weight_.var(), bias_.var(), config_.eps); }

Shape LayerNorm::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 1 && input.dim(-1) == config_.channels, ShapeError, "layer_norm '", path(), "': input is ", input,
                "; needs [..., ", config_.channels, "]");
  trace_leaf(trace, input, input, 0);
  return input;
}

void LayerNorm::reset_parameters(std::uint64_t) {
  init_constant(weight_, 1);
  init_constant(bias_, 0);
}

}  // namespace tessera

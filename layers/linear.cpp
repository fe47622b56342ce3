#include "layers/linear.h"

#include <algorithm>
#include <cmath>

#include "core/config/read.h"
#include "core/ops/dense_operands.h"
#include "core/ops/linear.h"
#include "core/support/counting.h"
#include "layers/init.h"

namespace tessera {

void LinearConfig::fields(Fields& f) {
  f.add("in", in, {.help = "input features", .range = at_least(1), .example = "784", .observable = "plan"});
  f.add("out", out, {.help = "output features", .range = at_least(1), .example = "10", .observable = "plan"});
  f.add("bias", bias, {.help = "adds a trained offset", .observable = "plan"});
  f.add("deviation", deviation,
        {.help = "draws initial weights from N(0, deviation^2), and sets biases to 0; PyTorch's uniform numbers without it",
         .range = positive,
         .example = "0.02",
         .observable = "bytes"});
}

Linear::Linear(const LinearConfig& config)
    : config_(config),
      weight_(add_parameter("weight", Tensor::zeros({config.out, config.in}))),
      bias_(config.bias ? &add_parameter("bias", Tensor::zeros({config.out}), ParameterRole::bias) : nullptr) {}

Value Linear::config() const { return write(config_); }

Var Linear::forward(const Var& x, const Context&) { return linear(x, weight_.var(), bias_ ? bias_->var() : Var()); }

Shape Linear::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 2 && input.dim(-1) == config_.in, ShapeError, "linear '", path(), "': input is ", input,
                "; needs [..., ", config_.in, "]");
  Shape output = input;
  output.set(input.rank() - 1, config_.out);
  trace_leaf(trace, input, output, product_of({checked_size("linear", output).erase(0).numel(), config_.in}));
  return output;
}

void Linear::reset_parameters(std::uint64_t seed) {
  if (config_.deviation) {
    init_normal(weight_, RngStream(seed, path(), "weight"), *config_.deviation);
    if (bias_ != nullptr) init_constant(*bias_, 0);
    return;
  }
  const double bound = 1 / std::sqrt(static_cast<double>(config_.in));
  init_uniform(weight_, RngStream(seed, path(), "weight"), bound);
  if (bias_ != nullptr) init_uniform(*bias_, RngStream(seed, path(), "bias"), bound);
}

}  // namespace tessera

#include "layers/class_token.h"

#include "core/config/read.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/concat.h"
#include "core/ops/dense_operands.h"
#include "core/ops/reduce.h"
#include "core/ops/view.h"
#include "layers/embedding.h"
#include "layers/init.h"

namespace tessera {

void ClassTokenConfig::fields(Fields& f) {
  f.add("width", width, {.help = "features of a position", .range = at_least(1), .example = "192", .observable = "plan"});
}

ClassToken::ClassToken(const ClassTokenConfig& config)
    : config_(config), weight_(add_parameter("weight", Tensor::zeros({1, config.width}), ParameterRole::embedding)) {}

Value ClassToken::config() const { return write(config_); }

Var ClassToken::forward(const Var& x, const Context&) {
  const Var none(Tensor::zeros({x.shape().dim(0), 1, config_.width}, x.dtype(), x.device()));
  return concat({add(none, cast(weight_.var(), x.dtype())), x}, 1);
}

Shape ClassToken::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() == 3 && input[2] == config_.width, ShapeError, "class_token '", path(), "': input is ", input,
                "; needs [n, positions, ", config_.width, "]");
  const Shape output = checked_size("class_token", {input[0], input[1] + 1, input[2]});
  trace_leaf(trace, input, output, 0);
  return output;
}

void ClassToken::reset_parameters(std::uint64_t seed) {
  init_normal(weight_, RngStream(seed, path(), "weight"), kInitialDeviation);
}

void TokenPoolConfig::fields(Fields& f) {
  f.add("pool", pool, {.help = "the first position, or the mean of all", .choices = {"first", "mean"}, .observable = "bytes"});
}

Value TokenPool::config() const { return write(config_); }

Var TokenPool::forward(const Var& x, const Context&) {
  if (config_.pool == "mean") return mean(x, {1});
  return reshape(slice(x, 1, 0, 1), x.shape().erase(1));
}

Shape TokenPool::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() == 3 && input[1] >= 1, ShapeError, "token_pool '", path(), "': input is ", input,
                "; needs [n, positions, width] and at least one position");
  const Shape output = input.erase(1);
  trace_leaf(trace, input, output, 0);
  return output;
}

}  // namespace tessera

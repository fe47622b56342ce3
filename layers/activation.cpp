#include "layers/activation.h"

#include "core/config/read.h"
#include "core/ops/gelu.h"
#include "core/ops/relu.h"
#include "core/ops/swiglu.h"
#include "core/ops/unary.h"

namespace tessera {

Value Activation::config() const { return Value::map(); }

Shape Activation::output_shape(const Shape& input, Trace* trace) const {
  trace_leaf(trace, input, input, 0);
  return input;
}

Var Relu::forward(const Var& x, const Context&) { return relu(x); }
Var Silu::forward(const Var& x, const Context&) { return silu(x); }
Var Sigmoid::forward(const Var& x, const Context&) { return sigmoid(x); }
Var Tanh::forward(const Var& x, const Context&) { return tanh(x); }

Var Swiglu::forward(const Var& x, const Context&) { return swiglu(x); }

Shape Swiglu::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 1 && input.dim(-1) % 2 == 0, ShapeError, "swiglu '", path(), "': input is ", input,
                "; needs [..., 2n]");
  Shape output = input;
  output.set(input.rank() - 1, input.dim(-1) / 2);
  trace_leaf(trace, input, output, 0);
  return output;
}

void GeluConfig::fields(Fields& f) {
  f.add("form", form, {.help = "exact, or the tanh approximation", .choices = {"erf", "tanh"}});
}

Value Gelu::config() const { return write(config_); }

Var Gelu::forward(const Var& x, const Context&) { return gelu(x, config_.form == "tanh" ? GeluForm::tanh : GeluForm::erf); }

}  // namespace tessera

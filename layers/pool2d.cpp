#include "layers/pool2d.h"

#include "core/config/read.h"
#include "core/ops/pool2d.h"

namespace tessera {

namespace {

Pool2dOptions op_options(const Pool2dConfig& config) {
  return {.kernel = config.kernel, .stride = config.stride.value_or(config.kernel), .padding = config.padding};
}

}  // namespace

void Pool2dConfig::fields(Fields& f) {
  f.add("kernel", kernel, {.help = "window size", .range = at_least(1), .example = "2", .observable = "plan"});
  f.add("stride", stride, {.help = "step between windows; the kernel when absent", .range = at_least(1), .observable = "plan"});
  f.add("padding", padding, {.help = "border on each side", .range = non_negative, .observable = "plan"});
}

Value MaxPool2d::config() const { return write(config_); }
Var MaxPool2d::forward(const Var& x, const Context&) { return max_pool2d(x, op_options(config_)); }
Shape MaxPool2d::output_shape(const Shape& input, Trace* trace) const {
  const Shape output = pool2d_output_shape(input, op_options(config_));
  trace_leaf(trace, input, output, 0);
  return output;
}

Value AvgPool2d::config() const { return write(config_); }
Var AvgPool2d::forward(const Var& x, const Context&) { return avg_pool2d(x, op_options(config_)); }
Shape AvgPool2d::output_shape(const Shape& input, Trace* trace) const {
  const Shape output = pool2d_output_shape(input, op_options(config_));
  trace_leaf(trace, input, output, 0);
  return output;
}

Var GlobalAvgPool::forward(const Var& x, const Context&) { return global_avg_pool(x); }
Shape GlobalAvgPool::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() == 4, ShapeError, "global_avg_pool '", path(), "': input is ", input, "; needs [n, h, w, c]");
  const Shape output{input.dim(0), input.dim(3)};
  trace_leaf(trace, input, output, 0);
  return output;
}

}  // namespace tessera

#include "layers/sparse_linear.h"

#include <cmath>

#include "core/config/read.h"
#include "core/mask_bits.h"
#include "core/ops/dense_operands.h"
#include "core/ops/sparse_product.h"
#include "core/support/counting.h"
#include "layers/init.h"

namespace tessera {
namespace {

const SparseLinearConfig& checked(const SparseLinearConfig& config) {
  const std::string problem = kept_problem(config.kept, {config.out, config.in});
  TESSERA_CHECK(problem.empty(), ConfigError, "sparse_linear: kept ", problem);
  return config;
}

}  // namespace

void SparseLinearConfig::fields(Fields& f) {
  f.add("in", in, {.help = "input features", .range = at_least(1), .example = "784", .observable = "plan"});
  f.add("out", out, {.help = "output features", .range = at_least(1), .example = "10", .observable = "plan"});
  f.add("kept", kept, {.help = "elements that the weight keeps", .range = non_negative, .example = "784", .observable = "plan"});
  f.add("bias", bias, {.help = "adds a trained offset", .observable = "plan"});
  if (const std::string problem = kept_problem(kept, {out, in}); !problem.empty()) f.require(false, "kept", problem);
}

SparseLinear::SparseLinear(const SparseLinearConfig& config)
    : config_(checked(config)),
      parts_("sparse_linear", *this, {config.out, config.in}, add_parameter("values", Tensor::zeros({config.kept})),
             add_buffer("mask", Tensor::zeros({packed_bytes(config.out * config.in)}, DType::u8))),
      bias_(config.bias ? &add_parameter("bias", Tensor::zeros({config.out}), ParameterRole::bias) : nullptr) {}

std::unique_ptr<SparseLinear> SparseLinear::of(const Linear& dense) {
  const LinearConfig& linear = dense.options();
  const Tensor bits = packed_bits(dense.weight().mask());
  auto sparse = std::make_unique<SparseLinear>(
      SparseLinearConfig{.in = linear.in, .out = linear.out, .kept = kept_bits(bits), .bias = linear.bias});
  sparse->parts_.take(dense.weight().value(), dense.weight().mask());
  sparse->parts_.values().set_trainable(dense.weight().trainable());
  copy_bias(dense.bias(), sparse->bias_);
  return sparse;
}

Value SparseLinear::config() const { return write(config_); }

Var SparseLinear::forward(const Var& x, const Context&) {
  return sparse_linear(x, parts_.values().var(), parts_.weight(), bias_ != nullptr ? bias_->var() : Var());
}

Shape SparseLinear::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 2 && input.dim(-1) == config_.in, ShapeError, "sparse_linear '", path(), "': input is ", input,
                "; needs [..., ", config_.in, "]");
  Shape output = input;
  output.set(input.rank() - 1, config_.out);
  const std::int64_t rows = checked_size("sparse_linear", output).erase(0).numel() / config_.out;
  trace_leaf(trace, input, output, product_of({rows, config_.kept}));
  return output;
}

void SparseLinear::reset_parameters(std::uint64_t seed) {
  const double bound = 1 / std::sqrt(static_cast<double>(config_.in));
  parts_.draw_mask(seed);
  init_uniform(parts_.values(), RngStream(seed, path(), "values"), bound);
  if (bias_ != nullptr) init_uniform(*bias_, RngStream(seed, path(), "bias"), bound);
}

std::unique_ptr<Module> SparseLinear::to_dense() const {
  auto dense = std::make_unique<Linear>(LinearConfig{.in = config_.in, .out = config_.out, .bias = config_.bias});
  dense->weight().set_value(dense_weight().to(Device::cpu()));
  dense->weight().set_mask(parts_.mask());
  dense->weight().set_trainable(parts_.values().trainable());
  copy_bias(bias_, dense->bias());
  return dense;
}

}  // namespace tessera

#include "layers/sparse_conv2d.h"

#include "core/config/read.h"
#include "core/mask_bits.h"
#include "core/ops/conv2d.h"
#include "core/ops/sparse_product.h"
#include "core/support/counting.h"
#include "layers/init.h"

namespace tessera {
namespace {

Shape weight_shape(const Conv2dConfig& conv) { return {conv.out, conv.kernel.h, conv.kernel.w, conv.in}; }

Conv2dOptions window(const Conv2dConfig& conv) {
  return {.stride = conv.stride, .padding = conv.padding, .dilation = conv.dilation};
}

const SparseConv2dConfig& checked(const SparseConv2dConfig& config) {
  TESSERA_CHECK(config.conv.groups == 1, ConfigError, "sparse_conv2d: groups is ", config.conv.groups, "; needs 1");
  const std::string problem = kept_problem(config.kept, weight_shape(config.conv));
  TESSERA_CHECK(problem.empty(), ConfigError, "sparse_conv2d: kept ", problem);
  return config;
}

}  // namespace

void SparseConv2dConfig::fields(Fields& f) {
  conv.window_fields(f);
  f.add("kept", kept, {.help = "elements that the weight keeps", .range = non_negative, .example = "64", .observable = "plan"});
  conv.bias_field(f);
  if (const std::string problem = kept_problem(kept, weight_shape(conv)); !problem.empty()) f.require(false, "kept", problem);
}

SparseConv2d::SparseConv2d(const SparseConv2dConfig& config)
    : config_(checked(config)),
      parts_("sparse_conv2d", *this, weight_shape(config.conv), add_parameter("values", Tensor::zeros({config.kept})),
             add_buffer("mask", Tensor::zeros({packed_bytes(weight_shape(config.conv).numel())}, DType::u8))),
      bias_(config.conv.bias ? &add_parameter("bias", Tensor::zeros({config.conv.out}), ParameterRole::bias) : nullptr) {}

std::unique_ptr<SparseConv2d> SparseConv2d::of(const Conv2d& dense) {
  const Tensor bits = packed_bits(dense.weight().mask());
  auto sparse = std::make_unique<SparseConv2d>(SparseConv2dConfig{.conv = dense.options(), .kept = kept_bits(bits)});
  sparse->parts_.take(dense.weight().value(), dense.weight().mask());
  sparse->parts_.values().set_trainable(dense.weight().trainable());
  copy_bias(dense.bias(), sparse->bias_);
  return sparse;
}

Value SparseConv2d::config() const { return write(config_); }

Var SparseConv2d::forward(const Var& x, const Context&) {
  return sparse_conv2d(x, parts_.values().var(), parts_.weight(), bias(), window(config_.conv));
}

Var SparseConv2d::forward_relu(const Var& x, const Var& residual, const Context&) {
  return sparse_conv2d_relu(x, parts_.values().var(), parts_.weight(), bias(), residual, window(config_.conv));
}

std::unique_ptr<Module> SparseConv2d::scaled(const Tensor& scale, const Tensor& shift) const {
  SparseConv2dConfig config = config_;
  config.conv.bias = true;
  auto result = std::make_unique<SparseConv2d>(config);
  result->parts_.take(scaled_filters(dense_weight(), scale), parts_.mask());
  result->bias_->set_value(scaled_bias(bias_ != nullptr ? bias_->value() : Tensor(), scale, shift));
  return result;
}

Shape SparseConv2d::output_shape(const Shape& input, Trace* trace) const {
  const Shape output = conv2d_output_shape(input, weight_shape(config_.conv), window(config_.conv));
  trace_leaf(trace, input, output, product_of({output[1], output[2], config_.kept}));
  return output;
}

void SparseConv2d::reset_parameters(std::uint64_t seed) {
  parts_.draw_mask(seed);
  const Conv2dConfig& conv = config_.conv;
  init_kaiming_normal(parts_.values(), RngStream(seed, path(), "values"), conv.out * conv.kernel.h * conv.kernel.w);
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

std::unique_ptr<Module> SparseConv2d::to_dense() const {
  auto dense = std::make_unique<Conv2d>(config_.conv);
  dense->weight().set_value(dense_weight().to(Device::cpu()));
  dense->weight().set_mask(parts_.mask());
  dense->weight().set_trainable(parts_.values().trainable());
  copy_bias(bias_, dense->bias());
  return dense;
}

}  // namespace tessera

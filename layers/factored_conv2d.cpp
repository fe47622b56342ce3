#include "layers/factored_conv2d.h"

#include "core/ops/view.h"
#include "core/support/error.h"
#include "layers/init.h"

namespace tessera {
namespace {

Var finish(const Var& x, const Var& filter, const FactoredConv2d::Tail& tail, const Conv2dOptions& options) {
  if (tail.relu) return conv2d_relu(x, filter, tail.bias, tail.residual, options);
  return conv2d(x, filter, tail.bias, options);
}

}  // namespace

FactoredConv2d::FactoredConv2d(std::string_view kind, const Conv2dConfig& conv) : conv_(conv) {
  TESSERA_CHECK(conv.groups == 1, ConfigError, kind, ": groups is ", conv.groups, "; needs 1");
}

void FactoredConv2d::add_filter(const std::string& name, const Shape& shape, const Conv2dOptions& options, double gain) {
  filters_.push_back({&add_parameter(name, Tensor::zeros(shape)), options, gain});
}

void FactoredConv2d::add_bias() {
  if (conv_.bias) bias_ = &add_parameter("bias", Tensor::zeros({conv_.out}), ParameterRole::bias);
}

Var FactoredConv2d::chain(const Var& x, std::span<const Var> filters, const Tail& tail) const {
  Var y = x;
  for (std::size_t i = 0; i + 1 < filters.size(); ++i) y = conv2d(y, filters[i], {}, filters_[i].options);
  return finish(y, filters.back(), tail, filters_.back().options);
}

// operands: x, then the filters.
Var FactoredConv2d::run_way(std::size_t way, std::span<const Var> operands, const Tail& tail) const {
  const std::span<const Var> filters = operands.subspan(1);
  if (way == 0) return chain(operands.front(), filters, tail);
  const auto compose = [&] { return reshape(composed(filters), weight_shape()); };
  return finish(operands.front(), made_once(weight_, filters_.front().parameter->value(), compose), tail, window());
}

Var FactoredConv2d::apply(const Var& x, const Tail& tail, const Context& context) {
  std::vector<Var> operands{x};
  for (const Filter& filter : filters_) operands.push_back(filter.parameter->var());
  const std::size_t way = execution_.choose(*this, operands, context.recompute, [&] {
    const Shape weight = weight_shape();
    const std::int64_t y = conv2d_output_shape(x.shape(), weight, window()).numel();
    return Ways{{"chain", "composed"}, 2.0 * static_cast<double>(y * (weight.numel() / weight[0])),
                [this](std::size_t i, std::span<const Var> o) { return run_way(i, o, {}); }};
  });
  if (tail.relu) return run_way(way, operands, tail);
  return run_kept_or_recomputed(context.recompute, std::move(operands), tail.bias,
                                [this, way](std::span<const Var> o, const Var& bias) { return run_way(way, o, {.bias = bias}); });
}

Var FactoredConv2d::forward(const Var& x, const Context& context) { return apply(x, {.bias = bias()}, context); }

Var FactoredConv2d::forward_relu(const Var& x, const Var& residual, const Context& context) {
  return apply(x, {.bias = bias(), .residual = residual, .relu = true}, context);
}

Tensor FactoredConv2d::dense_weight() const {
  const NoGrad no_grad;
  std::vector<Var> exact;
  for (const Filter& filter : filters_) exact.emplace_back(filter.parameter->value().to(DType::f64));
  return composed(exact).value().reshape(weight_shape()).to(filters_.front().parameter->value().dtype());
}

std::unique_ptr<Module> FactoredConv2d::scaled(const Tensor& scale, const Tensor& shift) const {
  Conv2dConfig conv = conv_;
  conv.bias = true;
  std::unique_ptr<FactoredConv2d> result = with(conv);
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    const Tensor& value = filters_[i].parameter->value();
    result->filters_[i].parameter->set_value(i + 1 < filters_.size() ? value.clone() : scaled_filters(value, scale));
  }
  result->bias_->set_value(scaled_bias(bias_ ? bias_->value() : Tensor(), scale, shift));
  return result;
}

Shape FactoredConv2d::output_shape(const Shape& input, Trace* trace) const {
  Shape shape = input;
  std::int64_t macs = 0;
  for (const Filter& filter : filters_) {
    shape = conv2d_output_shape(shape, filter.parameter->value().shape(), filter.options);
    macs += shape[1] * shape[2] * filter.parameter->value().numel();
  }
  trace_leaf(trace, input, shape, macs);
  return shape;
}

void FactoredConv2d::reset_parameters(std::uint64_t seed) {
  for (const Filter& filter : filters_) {
    const Shape& shape = filter.parameter->value().shape();
    const double fan_out = static_cast<double>(shape[0] * shape[1] * shape[2] / filter.options.groups);
    // init_kaiming_normal draws N(0, 2 / fan).
    init_kaiming_normal(*filter.parameter, RngStream(seed, path(), filter.parameter->name()),
                        static_cast<std::int64_t>(2 * fan_out / filter.gain));
  }
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

std::unique_ptr<Module> FactoredConv2d::to_dense() const {
  auto dense = std::make_unique<Conv2d>(conv_);
  dense->weight().set_value(dense_weight());
  dense->weight().set_trainable(filters_.front().parameter->trainable());
  copy_bias(bias_, dense->bias());
  return dense;
}

std::vector<TorchPart> FactoredConv2d::torch_tensors() const {
  std::vector<TorchPart> parts;
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    parts.push_back({.parameter = filters_[i].parameter->name(), .name = str(i, ".weight"), .convolution = true});
  }
  if (bias_ != nullptr) parts.push_back({.parameter = "bias", .name = str(filters_.size() - 1, ".bias")});
  return parts;
}

void FactoredConv2d::set_factors(std::span<const Tensor> factors) {
  TESSERA_CHECK(factors.size() == filters_.size(), ShapeError, kind(), " '", path(), "': ", factors.size(), " factors for ",
                filters_.size(), " filters");
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    Parameter& parameter = *filters_[i].parameter;
    parameter.set_value(factors[i].reshape(parameter.value().shape()));
  }
}

void FactoredConv2d::take_traits(const Conv2d& dense) {
  for (const Filter& filter : filters_) filter.parameter->set_trainable(dense.weight().trainable());
  copy_bias(dense.bias(), bias_);
}

}  // namespace tessera

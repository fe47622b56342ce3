#include "layers/factored_conv2d.h"

#include <utility>

#include "core/ops/view.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/init.h"

namespace tessera {
namespace {

Var finish(const Var& x, const Var& filter, const FactoredConv2d::Tail& tail, const Conv2dOptions& options) {
  if (tail.relu) return conv2d_relu(x, filter, tail.bias, tail.residual, options);
  return conv2d(x, filter, tail.bias, options);
}

std::string norm_name(std::size_t filter) { return str("norm", filter); }

Tensor exact_on_host(const Tensor& value) { return value.to(Device::cpu()).to(DType::f64).contiguous(); }

// The response [out] of a filter [out, kh, kw, in / groups] to an image that is `constant` [in] at every position. All are f64.
Tensor response(const Tensor& filter, std::int64_t groups, const Tensor& constant) {
  const Shape& shape = filter.shape();
  const std::int64_t taps = shape[1] * shape[2], in = shape[3];
  Tensor y = Tensor::zeros({shape[0]}, DType::f64);
  for (std::int64_t o = 0; o < shape[0]; ++o) {
    const double* const weights = filter.data<double>() + o * taps * in;
    const double* const channels = constant.data<double>() + o / (shape[0] / groups) * in;
    for (std::int64_t i = 0; i < taps * in; ++i) y.data<double>()[o] += weights[i] * channels[i % in];
  }
  return y;
}

}  // namespace

void batch_norm_field(Fields& f, bool& batch_norm) {
  f.add("batch_norm", batch_norm,
        {.help = "true: a batch norm behind every filter but the last; the first filter has all padding", .observable = "plan"});
}

FactoredConv2d::FactoredConv2d(std::string_view kind, const Conv2dConfig& conv, bool batch_norm)
    : conv_(conv), batch_norm_(batch_norm) {
  TESSERA_CHECK(conv.groups == 1, ConfigError, kind, ": groups is ", conv.groups, "; needs 1");
}

void FactoredConv2d::add_filter(const std::string& name, const Shape& shape, Conv2dOptions options, double gain) {
  if (batch_norm_) options.padding = filters_.empty() ? conv_.padding : Extent{0, 0};
  if (batch_norm_ && !filters_.empty()) {
    const std::int64_t channels = filters_.back().parameter->value().dim(0);
    add_child(norm_name(filters_.size() - 1), std::make_unique<BatchNorm>(BatchNormConfig{.channels = channels}));
  }
  filters_.push_back({&add_parameter(name, Tensor::zeros(shape)), options, gain});
}

void FactoredConv2d::add_bias() {
  if (conv_.bias) bias_ = &add_parameter("bias", Tensor::zeros({conv_.out}), ParameterRole::bias);
}

Var FactoredConv2d::chain(const Var& x, std::span<const Var> filters, const Tail& tail, const Context& context) const {
  Var y = x;
  for (std::size_t i = 0; i + 1 < filters.size(); ++i) {
    y = conv2d(y, filters[i], {}, filters_[i].options);
    if (batch_norm_) y = child(norm_name(i))(y, context);
  }
  return finish(y, filters.back(), tail, filters_.back().options);
}

Value FactoredConv2d::without_default_norm(Value config) {
  if (!config.at("batch_norm").as_bool()) config.erase("batch_norm");
  return config;
}

std::string FactoredConv2d::why_not_recompute() const {
  if (!batch_norm_) return "";
  return "has batch norms between its filters, whose running statistics another forward would move again; set batch_norm or "
         "recompute to false";
}

// operands: x, then the filters. Only for a layer without norms.
Var FactoredConv2d::run_way(std::size_t way, std::span<const Var> operands, const Tail& tail) const {
  const std::span<const Var> filters = operands.subspan(1);
  if (way == 0) return chain(operands.front(), filters, tail, {});
  const auto compose = [&] { return reshape(composed(filters), weight_shape()); };
  return finish(operands.front(), made_once(weight_, filters_.front().parameter->value(), compose), tail, window());
}

Var FactoredConv2d::apply(const Var& x, const Tail& tail, const Context& context) {
  std::vector<Var> operands{x};
  for (const Filter& filter : filters_) operands.push_back(filter.parameter->var());
  if (batch_norm_) {
    TESSERA_CHECK(!context.training || !context.recompute, ConfigError, kind(), " '", path(), "' ", why_not_recompute());
    return chain(x, std::span(operands).subspan(1), tail, context);
  }
  const std::size_t way = execution_.choose(*this, operands, context.recompute, [&] {
    const Shape weight = weight_shape();
    const std::int64_t y = conv2d_output_shape(x.shape(), weight, window()).numel();
    return Ways{{"chain", "composed"},
                2.0 * static_cast<double>(y * (weight.numel() / weight[0])),
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

// All padding comes before the first norm, so each norm adds the same value at every position. The filters after it turn that
// value into a bias.
FactoredConv2d::Inference FactoredConv2d::inference() const {
  Inference result;
  Tensor shift;  // [channels] of the image after the filters so far
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    const bool last = i + 1 == filters_.size();
    Tensor filter = exact_on_host(filters_[i].parameter->value());
    Tensor behind =
        shift.defined() ? response(filter, filters_[i].options.groups, shift) : Tensor::zeros({filter.dim(0)}, DType::f64);
    if (batch_norm_ && !last) {
      const auto [scale, offset] = dynamic_cast<const BatchNorm&>(child(norm_name(i))).inference_map();
      filter = scaled_filters(filter, scale);
      behind = scaled_bias(behind, scale, offset);
    }
    result.filters.push_back(std::move(filter));
    shift = std::move(behind);
  }
  if (bias_ != nullptr) {
    const Tensor bias = exact_on_host(bias_->value());
    for (std::int64_t o = 0; o < conv_.out; ++o) shift.data<double>()[o] += bias.data<double>()[o];
  }
  result.bias = std::move(shift);
  return result;
}

Tensor FactoredConv2d::dense_weight() const {
  const NoGrad no_grad;
  const Tensor& like = filters_.front().parameter->value();
  std::vector<Var> exact;
  for (const Tensor& filter : inference().filters) exact.emplace_back(filter);
  return composed(exact).value().reshape(weight_shape()).to(like.dtype()).to(like.device());
}

std::unique_ptr<Module> FactoredConv2d::scaled(const Tensor& scale, const Tensor& shift) const {
  Conv2dConfig conv = conv_;
  conv.bias = true;
  std::unique_ptr<FactoredConv2d> result = with(conv);
  const Inference exact = inference();
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    const Tensor value = i + 1 < filters_.size() ? exact.filters[i] : scaled_filters(exact.filters[i], scale);
    Parameter& parameter = *result->filters_[i].parameter;
    parameter.set_value(value.to(parameter.value().dtype()));
  }
  result->bias_->set_value(scaled_bias(exact.bias, scale, shift).to(result->bias_->value().dtype()));
  return result;
}

std::unique_ptr<Module> FactoredConv2d::without_norms() const {
  return scaled(Tensor::full({conv_.out}, 1, DType::f64), Tensor::zeros({conv_.out}, DType::f64));
}

Shape FactoredConv2d::output_shape(const Shape& input, Trace* trace) const {
  Shape shape = input;
  std::int64_t macs = 0;
  for (const Filter& filter : filters_) {
    shape = conv2d_output_shape(shape, filter.parameter->value().shape(), filter.options);
    macs = sum_of({macs, product_of({shape[1], shape[2], filter.parameter->value().numel()})});
  }
  trace_leaf(trace, input, shape, macs);
  return shape;
}

void FactoredConv2d::reset_parameters(std::uint64_t seed) {
  for (const Filter& filter : filters_) {
    const Shape& shape = filter.parameter->value().shape();
    const double fan_out = static_cast<double>(shape[0] * shape[1] * shape[2] / filter.options.groups);
    // The factor 2 is there because init_kaiming_normal draws N(0, 2 / fan).
    init_kaiming_normal(*filter.parameter, RngStream(seed, path(), filter.parameter->name()),
                        static_cast<std::int64_t>(2 * fan_out / filter.gain));
  }
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

std::unique_ptr<Module> FactoredConv2d::to_dense() const {
  Conv2dConfig conv = conv_;
  conv.bias = conv.bias || batch_norm_;
  auto dense = std::make_unique<Conv2d>(conv);
  const Tensor weight = dense_weight();
  dense->weight().set_value(weight);
  dense->weight().set_trainable(filters_.front().parameter->trainable());
  copy_bias(bias_, dense->bias());
  if (batch_norm_) dense->bias()->set_value(inference().bias.to(weight.dtype()).to(weight.device()));
  return dense;
}

std::vector<TorchPart> FactoredConv2d::torch_tensors() const {
  std::vector<TorchPart> parts;
  const std::size_t step = batch_norm_ ? 2 : 1;  // each norm is a separate part
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    parts.push_back({.tensor = filters_[i].parameter->name(), .name = str(step * i, ".weight"), .convolution = true});
  }
  if (bias_ != nullptr) parts.push_back({.tensor = "bias", .name = str(step * (filters_.size() - 1), ".bias")});
  for (std::size_t i = 0; batch_norm_ && i + 1 < filters_.size(); ++i) {
    for (const char* const tensor : {"weight", "bias", "running_mean", "running_var"}) {
      parts.push_back({.tensor = str(norm_name(i), '.', tensor), .name = str(2 * i + 1, '.', tensor)});
    }
  }
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

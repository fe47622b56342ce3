#include "train/onnx/emitter.h"

#include <algorithm>

#include "core/mask_bits.h"
#include "core/support/error.h"
#include "layers/self_attention.h"

namespace tessera {
namespace {

Tensor laid_out(const Tensor& value, OnnxAxes axes) {
  const Tensor host = value.to(Device::cpu());
  if (axes == OnnxAxes::convolution) return host.permute({0, 3, 1, 2}).contiguous();
  if (axes == OnnxAxes::transposed) return host.permute({1, 0}).contiguous();
  return host.contiguous();
}

}  // namespace

const OnnxForms& onnx_forms() {
  static const OnnxForms forms = [] {
    OnnxForms all;
    add_convolution_forms(all);
    add_simple_forms(all);
    add_train_forms(all);
    add_transformer_forms(all);
    return all;
  }();
  return forms;
}

namespace {

// Whether a layer joins all positions into one row or depends on their number. A sparse attention could read longer texts than
// `positions`, but a table of all pairs of so many positions may be larger than the network.
bool takes_one_length(Module& network, std::int64_t positions) {
  bool one = false;
  for_each_module(network, [&](const Module& module) {
    const auto* const attention = dynamic_cast<const SelfAttention*>(&module);
    const bool longer = attention != nullptr && attention->options().sparse && attention->options().sparse->positions > positions;
    one = one || longer || module.kind() == "flatten" || module.kind() == "class_token";
  });
  return one;
}

}  // namespace

OnnxValue OnnxEmitter::input(Module& network, const Shape& sample) {
  reads_tokens_ = network.input_limit() > 0;
  if (!reads_tokens_) return graph.input(sample.rank() == 4 ? "image" : "x", OnnxType::f32, sample);
  any_length_ = sample.rank() == 2 && !takes_one_length(network, sample[1]);
  std::vector<OnnxSize> told{kOnnxBatch};
  if (any_length_) told.emplace_back(kOnnxLength);
  tokens_ = graph.input("tokens", OnnxType::i64, sample, told);
  return tokens_;
}

OnnxValue OnnxEmitter::once(const std::string& name, const std::function<OnnxValue()>& make) {
  const auto known = made_.find(name);
  if (known != made_.end()) return known->second;
  const std::string around = graph.path();
  graph.enter(name);
  OnnxValue made = make();
  graph.enter(around);
  return made_.emplace(name, std::move(made)).first->second;
}

OnnxValue OnnxEmitter::sizes_of_tokens() {
  return once("tokens/sizes", [&] { return graph.sizes(tokens_); });
}

OnnxValue OnnxEmitter::length_of(const OnnxValue& x) {
  if (!any_length_) return graph.integer(x.shape[1]);
  return once("tokens/length", [&] { return graph.gather(sizes_of_tokens(), graph.integer(1), 0, {}); });
}

OnnxValue OnnxEmitter::by_position(const OnnxValue& y, const Shape& shape) {
  if (!any_length_ || shape.rank() != 3) return graph.reshape(y, shape);
  const OnnxValue sizes =
      graph.apply("Concat", {sizes_of_tokens(), graph.integers({shape[2]})}, {3}, {{"axis", std::int64_t{0}}});
  return graph.reshape(y, shape, sizes);
}

bool has_parameter(const Module& module, std::string_view name) {
  return std::ranges::any_of(module.parameters(), [&](const auto& parameter) { return parameter->name() == name; });
}

OnnxValue OnnxEmitter::emit(const Module& module, const OnnxValue& x) {
  const auto form = onnx_forms().find(module.kind());
  TESSERA_CHECK(form != onnx_forms().end(), ConfigError, "export: layer '", module.path(), "' is ", module.kind(),
                ", which has no form in ONNX");
  const std::string around = graph.path();
  graph.enter(module.path());
  OnnxValue y = form->second(*this, module, x);
  graph.enter(around);
  return y;
}

OnnxValue OnnxEmitter::parameter_at(const std::string& path, const Parameter& parameter, OnnxAxes axes) {
  const auto before = masks_.find(path);
  Tensor mask = parameter.mask();
  if (!mask.defined() && before != masks_.end() && before->second.shape() == parameter.value().shape()) mask = before->second;
  if (mask.defined() && noted_.find(path) == noted_.end()) {
    const Tensor bits = packed_bits(laid_out(mask, axes));
    noted_[path] = {.elements = mask.numel(), .kept = kept_bits(bits), .bits = bits};
  }
  return graph.tensor(path, laid_out(parameter.value(), axes));
}

OnnxValue OnnxEmitter::add_bias(const OnnxValue& y, const Module& owner, const char* name) {
  return has_parameter(owner, name) ? graph.binary("Add", y, parameter(owner, owner.parameter(name))) : y;
}

OnnxValue OnnxEmitter::linear(const std::string& path, const Linear& layer, const OnnxValue& x) {
  const OnnxValue weight = parameter_at(join_path(path, "weight"), layer.weight(), OnnxAxes::transposed);
  const OnnxValue y = graph.matmul(graph.channels_last(x), weight);
  return layer.bias() != nullptr ? graph.binary("Add", y, parameter_at(join_path(path, "bias"), *layer.bias())) : y;
}

OnnxValue OnnxEmitter::convolution(const OnnxValue& x, const OnnxValue& filters, const Parameter* bias,
                                   const std::string& bias_path, const Conv2dOptions& options) {
  const Shape oihw = filters.shape;
  std::vector<OnnxValue> inputs{graph.channels_first(x), filters};
  if (bias != nullptr) inputs.push_back(parameter_at(bias_path, *bias));
  const auto pair = [](const Extent& e) { return std::vector<std::int64_t>{e.h, e.w}; };
  const Extent& pad = options.padding;
  return graph.apply("Conv", inputs, conv2d_output_shape(x.shape, {oihw[0], oihw[2], oihw[3], oihw[1]}, options),
                     {{"kernel_shape", pair({oihw[2], oihw[3]})},
                      {"strides", pair(options.stride)},
                      {"pads", std::vector<std::int64_t>{pad.h, pad.w, pad.h, pad.w}},
                      {"dilations", pair(options.dilation)},
                      {"group", options.groups}});
}

OnnxValue OnnxEmitter::conv2d(const std::string& path, const Conv2d& layer, const OnnxValue& x) {
  const Conv2dConfig& c = layer.options();
  const OnnxValue filters = parameter_at(join_path(path, "weight"), layer.weight(), OnnxAxes::convolution);
  return convolution(x, filters, layer.bias(), join_path(path, "bias"),
                     {.stride = c.stride, .padding = c.padding, .dilation = c.dilation, .groups = c.groups});
}

}  // namespace tessera

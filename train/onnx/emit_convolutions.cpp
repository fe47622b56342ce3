// Convolutions of every format, pools, batch norms and the blocks of residual networks.
#include <array>

#include "core/config/read.h"
#include "core/ops/pool2d.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/factored_conv2d.h"
#include "layers/patches.h"
#include "layers/pool2d.h"
#include "layers/residual.h"
#include "layers/residual_block.h"
#include "layers/sparse_conv2d.h"
#include "train/onnx/emitter.h"

namespace tessera {
namespace {

OnnxValue emit_factored(OnnxEmitter& e, const FactoredConv2d& conv, const OnnxValue& x) {
  OnnxValue y = x;
  for (std::size_t i = 0; i < conv.filters().size(); ++i) {
    const FactoredConv2d::Filter& filter = conv.filters()[i];
    const bool last = i + 1 == conv.filters().size();
    const Parameter* const bias = last && has_parameter(conv, "bias") ? &conv.parameter("bias") : nullptr;
    const OnnxValue filters = e.parameter(conv, *filter.parameter, OnnxAxes::convolution);
    y = e.convolution(y, filters, bias, join_path(conv.path(), "bias"), filter.options);
    if (conv.has_norms() && !last) y = e.emit(*conv.children()[i].module, y);
  }
  return y;
}

OnnxValue emit_sparse_conv2d(OnnxEmitter& e, const SparseConv2d& layer, const OnnxValue& x) {
  const std::unique_ptr<Module> dense = layer.to_dense();
  return e.conv2d(layer.path(), dynamic_cast<const Conv2d&>(*dense), x);
}

// BatchNormalization of ONNX needs the channels right after the batch. Other inputs take a product and a sum.
OnnxValue emit_batch_norm(OnnxEmitter& e, const BatchNorm& norm, const OnnxValue& x) {
  const auto buffer = [&](std::size_t i) {
    const Buffer& held = *norm.buffers()[i];
    return e.graph.tensor(join_path(norm.path(), held.name), held.value);
  };
  if (x.shape.rank() == 4 || x.shape.rank() == 2) {
    const OnnxValue read = x.shape.rank() == 4 ? e.graph.channels_first(x) : x;
    return e.graph.apply(
        "BatchNormalization",
        {read, e.parameter(norm, norm.parameter("weight")), e.parameter(norm, norm.parameter("bias")), buffer(0), buffer(1)},
        read.shape, {{"epsilon", static_cast<float>(norm.options().eps)}});
  }
  const auto [scale, shift] = norm.inference_map();
  const OnnxValue scaled = e.graph.binary("Mul", x, e.graph.tensor(join_path(norm.path(), "scale"), scale));
  return e.graph.binary("Add", scaled, e.graph.tensor(join_path(norm.path(), "shift"), shift));
}

OnnxValue pooled(OnnxEmitter& e, const std::string& op, const Pool2dOptions& o, const OnnxValue& x) {
  const auto pair = [](const Extent& extent) { return std::vector<std::int64_t>{extent.h, extent.w}; };
  OnnxAttributes attributes{{"kernel_shape", pair(o.kernel)},
                            {"strides", pair(o.stride)},
                            {"pads", std::vector<std::int64_t>{o.padding.h, o.padding.w, o.padding.h, o.padding.w}}};
  if (op == "AveragePool") attributes.emplace_back("count_include_pad", std::int64_t{0});
  return e.graph.apply(op, {e.graph.channels_first(x)}, pool2d_output_shape(x.shape, o), std::move(attributes));
}

OnnxValue emit_pool(OnnxEmitter& e, const std::string& op, const Module& pool, const OnnxValue& x) {
  const auto config = read<Pool2dConfig>(pool.config());
  return pooled(e, op, {.kernel = config.kernel, .stride = config.stride.value_or(config.kernel), .padding = config.padding}, x);
}

OnnxValue emit_global_avg_pool(OnnxEmitter& e, const GlobalAvgPool&, const OnnxValue& x) {
  const OnnxValue image = e.graph.channels_first(x);
  const Shape one{x.shape[0], 1, 1, x.shape[3]};
  OnnxValue y = e.graph.apply("GlobalAveragePool", {image}, one);
  y = e.graph.apply("Flatten", {y}, {x.shape[0], x.shape[3]}, {{"axis", std::int64_t{1}}});
  y.channels_first = false;
  return y;
}

// Takes every stride-th pixel and pads with zero channels on both sides (layers/residual_block.h).
OnnxValue option_a(OnnxEmitter& e, const ResidualBlockConfig& config, const OnnxValue& x) {
  const Pool2dOptions sampled{.kernel = {1, 1}, .stride = {config.stride, config.stride}};
  OnnxValue y = config.stride == 1 ? e.graph.channels_first(x) : pooled(e, "AveragePool", sampled, x);
  const std::int64_t extra = config.out - config.in, front = extra / 2;
  if (extra == 0) return y;
  Shape shape = y.shape;
  shape.set(3, config.out);
  return e.graph.apply("Pad", {y, e.graph.integers({0, front, 0, 0, 0, extra - front, 0, 0})}, shape);
}

OnnxValue emit_residual_block(OnnxEmitter& e, const ResidualBlock& block, const OnnxValue& x) {
  OnnxValue y = x;
  for (int i = 1; i <= block.convolutions(); ++i) {
    y = e.emit_child(block, str("bn", i), e.emit_child(block, str("conv", i), y));
    if (i < block.convolutions()) y = e.graph.unary("Relu", y);
  }
  OnnxValue joined = x;
  if (block.options().shortcut == "projection") joined = e.emit_child(block, "downsample", x);
  if (block.options().shortcut == "option_a") joined = option_a(e, block.options(), x);
  return e.graph.unary("Relu", e.graph.binary("Add", y, joined));
}

OnnxValue emit_residual(OnnxEmitter& e, const Residual& block, const OnnxValue& x) {
  const OnnxValue body = e.emit_child(block, "body", x);
  const OnnxValue sum = e.graph.binary("Add", body, block.has_child("shortcut") ? e.emit_child(block, "shortcut", x) : x);
  return read<ResidualConfig>(block.config()).relu ? e.graph.unary("Relu", sum) : sum;
}

OnnxValue emit_patches(OnnxEmitter& e, const Patches& patches, const OnnxValue& x) {
  const OnnxValue y = e.graph.channels_last(e.emit_child(patches, "conv", x));
  return e.graph.reshape(y, {y.shape[0], y.shape[1] * y.shape[2], y.shape[3]});
}

}  // namespace

void add_convolution_forms(OnnxForms& forms) {
  forms["conv2d"] = form_of<Conv2d>([](OnnxEmitter& e, const Conv2d& m, const OnnxValue& x) { return e.conv2d(m.path(), m, x); });
  for (const char* const kind : {"cp_conv2d", "spatial_svd_conv2d", "svd_conv2d", "tucker2_conv2d"}) {
    forms[kind] = form_of<FactoredConv2d>(emit_factored);
  }
  forms["sparse_conv2d"] = form_of<SparseConv2d>(emit_sparse_conv2d);
  forms["batch_norm"] = form_of<BatchNorm>(emit_batch_norm);
  forms["avg_pool2d"] = [](OnnxEmitter& e, const Module& m, const OnnxValue& x) { return emit_pool(e, "AveragePool", m, x); };
  forms["max_pool2d"] = [](OnnxEmitter& e, const Module& m, const OnnxValue& x) { return emit_pool(e, "MaxPool", m, x); };
  forms["global_avg_pool"] = form_of<GlobalAvgPool>(emit_global_avg_pool);
  forms["basic_block"] = form_of<ResidualBlock>(emit_residual_block);
  forms["bottleneck"] = form_of<ResidualBlock>(emit_residual_block);
  forms["residual"] = form_of<Residual>(emit_residual);
  forms["patches"] = form_of<Patches>(emit_patches);
}

}  // namespace tessera

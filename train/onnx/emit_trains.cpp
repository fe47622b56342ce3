// Tensor trains. The cores are the initialisers, and their products part of the graph: a file is as small as the train, and a
// runtime multiplies what does not depend on the input once, when it loads.
#include <span>

#include "core/config/read.h"
#include "core/support/counting.h"
#include "layers/tt_conv2d.h"
#include "layers/tt_embedding.h"
#include "layers/tt_garipov_conv2d.h"
#include "layers/tt_linear.h"
#include "train/onnx/emitter.h"

namespace tessera {
namespace {

using Values = std::span<const OnnxValue>;
using Sizes = std::span<const std::int64_t>;

std::vector<OnnxValue> cores_of(OnnxEmitter& e, const Module& layer) {
  std::vector<OnnxValue> cores;
  for (const auto& parameter : layer.parameters()) {
    if (parameter->name() != "bias") cores.push_back(e.parameter(layer, *parameter));
  }
  return cores;
}

const Parameter* bias_of(const Module& layer) { return has_parameter(layer, "bias") ? &layer.parameter("bias") : nullptr; }

// As joined_cores() (layers/tt_cores.h): [r_0 n_1 ... n_d, r_d].
OnnxValue joined_cores(OnnxBuilder& g, Values cores) {
  const auto matrix = [&](const OnnxValue& core, std::int64_t rows) {
    return g.reshape(core, {rows, core.shape.numel() / rows});
  };
  OnnxValue product;
  for (const OnnxValue& core : cores) {
    product = product.name.empty() ? core : g.matmul(product, matrix(core, core.shape[0]));
    product = matrix(product, product.shape.numel() / core.shape[2]);
  }
  return product;
}

// As joined_pairs() (layers/tt_pairs.h): [r, o_first ... o_last, i_first ... i_last, r'].
OnnxValue joined_pairs(OnnxBuilder& g, Values cores, Sizes out_modes, Sizes in_modes) {
  Modes sizes{cores.front().shape[0]};
  for (std::size_t k = 0; k < cores.size(); ++k) sizes.insert(sizes.end(), {out_modes[k], in_modes[k]});
  sizes.push_back(cores.back().shape[2]);
  std::vector<std::int64_t> axes{0};
  for (const int parity : {1, 2}) {
    for (std::size_t k = 0; k < cores.size(); ++k) axes.push_back(static_cast<std::int64_t>(2 * k) + parity);
  }
  axes.push_back(std::ssize(sizes) - 1);
  const OnnxValue product = g.permute(g.reshape(joined_cores(g, cores), shape_of(sizes)), axes);
  return g.reshape(product, {sizes.front(), product_of(out_modes), product_of(in_modes), sizes.back()});
}

// Multiplies the cores of each side. Each product is the filters of a 1x1 convolution (layers/tt_conv2d.h).
OnnxValue emit_tt_conv2d(OnnxEmitter& e, const TtConv2d& layer, const OnnxValue& x) {
  const auto config = read<TtConv2dConfig>(layer.config());
  const Conv2dConfig& conv = config.conv;
  const std::vector<OnnxValue> cores = cores_of(e, layer);
  const std::size_t p = config.out_modes.size();
  const std::int64_t r_out = config.ranks[p - 1], r_in = config.ranks[p];
  OnnxBuilder& g = e.graph;
  const OnnxValue in_factor = g.reshape(joined_cores(g, Values(cores).subspan(p + 1)), {r_in, conv.in, 1, 1});
  const OnnxValue core = g.permute(g.reshape(cores[p], {r_out, conv.kernel.h, conv.kernel.w, r_in}), {0, 3, 1, 2});
  const OnnxValue out_factor = g.reshape(joined_cores(g, Values(cores).first(p)), {conv.out, r_out, 1, 1});
  const OnnxValue narrow = e.convolution(x, in_factor, nullptr, {}, {});
  const OnnxValue between =
      e.convolution(narrow, core, nullptr, {}, {.stride = conv.stride, .padding = conv.padding, .dilation = conv.dilation});
  return e.convolution(between, out_factor, bias_of(layer), join_path(layer.path(), "bias"), {});
}

// The filters are the product of all cores, as in the layer itself (layers/tt_garipov_conv2d.h).
OnnxValue emit_tt_garipov_conv2d(OnnxEmitter& e, const TtGaripovConv2d& layer, const OnnxValue& x) {
  const auto config = read<TtGaripovConv2dConfig>(layer.config());
  const Conv2dConfig& conv = config.conv;
  OnnxBuilder& g = e.graph;
  std::vector<OnnxValue> cores = cores_of(e, layer);
  // The first two cores join to the first core of a matrix train. Its input index runs over taps, then channels.
  const std::int64_t taps = conv.kernel.h * conv.kernel.w, o = config.out_modes[0], i = config.in_modes[0], r = cores[1].shape[2];
  const OnnxValue two = g.permute(g.reshape(joined_cores(g, Values(cores).first(2)), {taps, o, i * r}), {1, 0, 2});
  cores[1] = g.reshape(two, {1, o * taps * i, r});
  Modes sizes, axes;
  for (std::size_t k = 0; k < config.out_modes.size(); ++k) {
    sizes.insert(sizes.end(), {config.out_modes[k], (k == 0 ? taps : 1) * config.in_modes[k]});
  }
  for (const int parity : {0, 1}) {
    for (std::size_t k = 0; k < config.out_modes.size(); ++k) axes.push_back(static_cast<std::int64_t>(2 * k) + parity);
  }
  const OnnxValue matrix = g.permute(g.reshape(joined_cores(g, Values(cores).subspan(1)), shape_of(sizes)), axes);
  const OnnxValue filters = g.permute(g.reshape(matrix, {conv.out, conv.kernel.h, conv.kernel.w, conv.in}), {0, 3, 1, 2});
  return e.convolution(x, filters, bias_of(layer), join_path(layer.path(), "bias"),
                       {.stride = conv.stride, .padding = conv.padding, .dilation = conv.dilation});
}

// Applies the second half of the cores to x, then the first half (layers/tt_linear.h).
OnnxValue emit_tt_linear(OnnxEmitter& e, const TtLinear& layer, const OnnxValue& given) {
  const auto config = read<TtLinearConfig>(layer.config());
  OnnxBuilder& g = e.graph;
  const std::vector<OnnxValue> cores = cores_of(e, layer);
  const std::size_t split = tt_halves(config.out_modes, config.in_modes, config.ranks).left;
  const Sizes outs(config.out_modes), ins(config.in_modes);
  const OnnxValue left = joined_pairs(g, Values(cores).first(split), outs.first(split), ins.first(split));
  const OnnxValue right = joined_pairs(g, Values(cores).subspan(split), outs.subspan(split), ins.subspan(split));
  const std::int64_t o_left = left.shape[1], i_left = left.shape[2], r = left.shape[3];
  const std::int64_t o_right = right.shape[1], i_right = right.shape[2];
  const OnnxValue x = g.channels_last(given);
  const std::int64_t rows = x.shape.numel() / config.in;
  const OnnxValue turned = g.permute(g.reshape(right, {r * o_right, i_right}), {1, 0});
  const OnnxValue between = g.matmul(g.reshape(x, {rows * i_left, i_right}), turned);
  const OnnxValue y = g.matmul(g.reshape(left, {o_left, i_left * r}), g.reshape(between, {rows, i_left * r, o_right}));
  Shape output = x.shape;
  output.set(output.rank() - 1, config.out);
  return e.add_bias(e.by_position(y, output), layer);
}

// Selects a slice of each core by the digits of the token, and multiplies the slices (layers/tt_embedding.h).
OnnxValue emit_tt_embedding(OnnxEmitter& e, const TtEmbedding& layer, const OnnxValue& x) {
  const auto config = read<TtEmbeddingConfig>(layer.config());
  OnnxBuilder& g = e.graph;
  const std::vector<OnnxValue> cores = cores_of(e, layer);
  std::vector<OnnxValue> digits(cores.size(), x);
  for (std::size_t k = cores.size() - 1; k > 0; --k) {
    const OnnxValue mode = g.integer(config.vocabulary_modes[k]), rest = digits[k];
    digits[k] = g.binary("Mod", rest, mode);
    digits[k - 1] = g.binary("Div", rest, mode);
  }
  const std::int64_t rows = x.shape.numel();
  OnnxValue product;
  std::int64_t done = 1;  // features of the product so far
  for (std::size_t k = 0; k < cores.size(); ++k) {
    const std::int64_t before = cores[k].shape[0], after = cores[k].shape[2];
    const std::int64_t mode = config.vocabulary_modes[k], width = config.width_modes[k];
    const OnnxValue slices =
        g.reshape(g.permute(g.reshape(cores[k], {before, mode, width, after}), {1, 0, 2, 3}), {mode, before * width * after});
    const OnnxValue row = g.gather(slices, digits[k], 0, x.shape.append(slices.shape[1]));
    const OnnxValue taken = g.reshape(row, {rows, before, width * after});
    product = product.name.empty() ? taken : g.matmul(product, taken);
    done *= width;
    product = g.reshape(product, {rows, done, after});
  }
  return e.by_position(product, x.shape.append(config.width));
}

}  // namespace

void add_train_forms(OnnxForms& forms) {
  forms["tt_conv2d"] = form_of<TtConv2d>(emit_tt_conv2d);
  forms["tt_garipov_conv2d"] = form_of<TtGaripovConv2d>(emit_tt_garipov_conv2d);
  forms["tt_linear"] = form_of<TtLinear>(emit_tt_linear);
  forms["tt_embedding"] = form_of<TtEmbedding>(emit_tt_embedding);
}

}  // namespace tessera

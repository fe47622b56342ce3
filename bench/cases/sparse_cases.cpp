#include "bench/cases/sparse_cases.h"

#include <algorithm>
#include <cmath>

#include "bench/cases/dense_cases.h"
#include "bench/result_lines.h"
#include "compress/formats/sparse_layer.h"
#include "compress/patterns/builtin.h"
#include "compress/prune/scores.h"
#include "core/ops/sparse_product.h"
#include "core/rng.h"
#include "core/sparse_index.h"
#include "core/support/error.h"
#include "core/support/rounding.h"
#include "layers/compressed.h"

namespace tessera::bench {
namespace {

// The deviation of the logarithm of a row's and of a column's root mean square, measured in fc2 [1024, 1024] of
// configs/tables/fashion_mlp/dense.yaml after 5 epochs, seed 1. Apart from that the weights are the initial uniform ones, moved
// slightly. At a density of 0.1 a row keeps 102 weights on average. The tenth and ninetieth percentile of a row are 26 and 172 in
// fc2, 32 and 180 in the weights drawn here. For a column they are 56 and 151 in fc2, 49 and 164 here.
constexpr double kRowSpread = 0.089, kColumnSpread = 0.070;
constexpr double kMoved = 0.1;  // of the bound of the uniform weights

Tensor normal_numbers(const Shape& shape, const char* purpose, double deviation) {
  Tensor numbers = Tensor::empty(shape);
  fill_normal(numbers, RngStream(1, "sparse_bench", purpose), 0, deviation);
  return numbers;
}

Tensor trained_weight(const Shape& shape) {
  Tensor weight = random_tensor(shape, "weight");
  const std::int64_t row_size = shape.numel() / shape[0];
  const Tensor moved = normal_numbers(shape, "moved", kMoved);
  const Tensor rows = normal_numbers({shape[0]}, "rows", kRowSpread);
  const Tensor columns = normal_numbers({row_size}, "columns", kColumnSpread);
  float* const w = weight.data<float>();
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const float scale = std::exp(rows.data<float>()[i / row_size] + columns.data<float>()[i % row_size]);
    w[i] = (w[i] + moved.data<float>()[i]) * scale;
  }
  return weight;
}

Tensor weight_for(const SparseCase& of, const Shape& shape) {
  if (of.magnitudes == Magnitudes::independent) return random_tensor(shape, "weight");
  if (!of.weight.defined()) return trained_weight(shape);
  TESSERA_CHECK(of.weight.shape() == shape, ShapeError, "sparse case: the weight does not fit: it is ", of.weight.shape(),
                ", the layer's is ", shape);
  return of.weight;
}

Conv2dOptions options_of(const LayerShape& shape) {
  const auto* const conv = std::get_if<ConvShape>(&shape);
  return conv != nullptr ? conv->options() : Conv2dOptions();
}

// The passes of the layer that a training step runs, called directly without the autograd sweep.
std::vector<Part> passes_of(const LayerPair& pair, Phase phase) {
  if (phase == Phase::inference) return {};
  const auto weight = std::make_shared<SparseWeight>(pair.dense->parameter("weight").mask());
  const Tensor values = pair.compressed->parameter("values").value();
  const Tensor x = pair.x.to(pair.compute);
  const Tensor grad_y = gradient_of_output(*pair.compressed, x.shape()).to(pair.compute);
  const Tensor y = Tensor::empty_like(grad_y), grad_x = Tensor::empty_like(x), grad_values = Tensor::empty_like(values);
  const Conv2dOptions options = options_of(pair.shape);
  const double flops = 2 * static_cast<double>(x.dim(0) * total_cost(*pair.compressed, x.shape()).macs);
  return {{{"forward", [=] { cpu::sparse_forward(x, values, *weight, {}, y, options, false); }}, flops},
          {{"gradient of x", [=] { cpu::sparse_backward_input(grad_y, values, *weight, grad_x, options); }}, flops},
          {{"gradient of values", [=] { cpu::sparse_backward_values(x, grad_y, *weight, grad_values, {}, options); }}, flops}};
}

// oneDNN's dense layer with as many inputs as a row keeps on average, at each tap of a convolution. Its operands are f32.
std::function<Part(Phase)> dense_of_as_many(const SparseCase& of, const Tensor& mask) {
  if (of.compute != DType::f32) return {};
  const std::int64_t kept = sparse_index(mask).offsets.back();
  const auto inputs = [&](std::int64_t rows) { return std::max<std::int64_t>(1, ceil_div(kept, rows)); };
  if (const auto* const conv = std::get_if<ConvShape>(&of.shape)) {
    ConvShape shape = *conv;
    shape.in = inputs(shape.out * shape.kernel * shape.kernel);
    return [shape](Phase phase) { return conv_part(str("dense ", to_string(LayerShape(shape))), shape, phase); };
  }
  LinearShape shape = std::get<LinearShape>(of.shape);
  shape.in = inputs(shape.out);
  return [shape](Phase phase) { return product_part(str("dense ", to_string(LayerShape(shape))), shape, phase); };
}

Value kept_in_a_row(const Tensor& mask) {
  const SparseIndex index = sparse_index(mask);
  std::vector<double> kept;
  for (std::int64_t r = 0; r < index.rows; ++r) {
    kept.push_back(
        static_cast<double>(index.offsets[static_cast<std::size_t>(r) + 1] - index.offsets[static_cast<std::size_t>(r)]));
  }
  return to_value(summarise(kept));
}

}  // namespace

std::string name_of(const PatternConfig& pattern) {
  std::string name = pattern.pattern;
  if (pattern.pattern == "block") name += str(' ', pattern.block.value_or(Extent{16, 16}));
  if (pattern.group) name += str(' ', *pattern.group);
  return name;
}

std::string name_of(const SparseCase& of) {
  return name_of(of.pattern) + (of.magnitudes == Magnitudes::trained ? ", trained rows" : "");
}

std::string row_of(const SparseCase& of) {
  return str(name_of(of), " of ", to_string(of.shape), of.compute == DType::f32 ? "" : str(", ", name_of(of.compute)));
}

std::vector<SparseTarget> sparse_targets() {
  const PatternConfig any{.pattern = "unstructured"}, blocks{.pattern = "block"};
  const PatternConfig tiles{.pattern = "tile", .group = 64};
  const auto linear = [](std::int64_t rows, std::int64_t in, std::int64_t out) { return LayerShape(LinearShape{rows, in, out}); };
  const LayerShape square = linear(1024, 1024, 1024), half = linear(512, 1024, 1024);
  const LayerShape conv = ConvShape{8, 128, 128, 28, 3};
  std::vector<SparseTarget> all;
  for (const Magnitudes magnitudes : {Magnitudes::independent, Magnitudes::trained}) {
    for (const auto& [density, least] : {std::pair(.05, 9.5), std::pair(.1, 4.8), std::pair(.2, 2.5), std::pair(.3, 1.65)}) {
      all.push_back({.of = {any, density, square, magnitudes}, .forward = least, .share = .45});
    }
  }
  all.push_back({.of = {any, .45, square}, .forward = 1});
  for (const auto& [density, least] : {std::pair(.1, 8.0), std::pair(.25, 3.7), std::pair(.5, 1.95)}) {
    all.push_back({.of = {blocks, density, square}, .forward = least, .share = .75});
  }
  all.push_back({.of = {any, .1, half}, .training = 3.3, .product_share = .45, .sums_share = .28});
  all.push_back({.of = {any, .1, half, Magnitudes::trained}, .product_share = .45, .sums_share = .28});
  all.push_back({.of = {any, .1, half, Magnitudes::independent, DType::bf16}});
  all.push_back({.of = {blocks, .25, half}, .product_share = .75});
  all.push_back({.of = {tiles, .25, half}, .training = 2.8, .product_share = .70});
  for (const auto& [in, out] : {std::pair(768, 768), std::pair(768, 3072), std::pair(3072, 768)}) {
    all.push_back({.of = {tiles, .25, linear(1024, in, out)}, .forward = 3.0, .share = .70});
    all.push_back({.of = {tiles, .5, linear(1024, in, out)}, .forward = 1.6, .share = .70});
  }
  all.push_back({.of = {any, .1, conv}, .forward = 1.8, .training = 1.5});
  all.push_back({.of = {tiles, .25, conv}, .share = .70});
  // The last block of a CIFAR ResNet-8.
  all.push_back({.of = {{.pattern = "tile", .group = 16}, .25, ConvShape{128, 64, 64, 8, 3}}, .share = .70});
  return all;
}

std::vector<SparseTarget> avx2_targets() {
  return {{.of = {{.pattern = "unstructured"}, .1, LinearShape{1024, 1024, 1024}}},
          {.of = {{.pattern = "tile", .group = 64}, .25, LinearShape{1024, 768, 3072}}}};
}

void take_weight(std::vector<SparseTarget>& targets, const Tensor& weight) {
  TESSERA_CHECK(weight.rank() == 2 && weight.dtype() == DType::f32, ConfigError, "sparse_bench: the weight is ", weight.shape(),
                " of ", name_of(weight.dtype()), "; needs a linear layer's, [out, in] of f32");
  for (SparseTarget& target : targets) {
    if (target.of.magnitudes != Magnitudes::trained) continue;
    const LinearShape& drawn = std::get<LinearShape>(target.of.shape);
    target.of.shape = LinearShape{drawn.rows, weight.dim(1), weight.dim(0)};
    target.of.weight = weight;
  }
}

Tensor pattern_mask(const PatternConfig& pattern, double density, const Tensor& weight) {
  const Tensor scores = magnitudes(weight);
  const std::int64_t kept = std::llround(density * static_cast<double>(scores.numel()));
  return make_pattern(pattern)->project({&scores, 1}, kept).front();
}

LayerPair sparse_pair(const SparseCase& of) {
  const std::shared_ptr<Module> dense = dense_of(of.shape);
  Parameter& weight = dense->parameter("weight");
  weight.set_value(weight_for(of, weight.value().shape()));
  weight.set_mask(pattern_mask(of.pattern, of.density, weight.value()));
  LayerPair pair{name_of(of), of.shape, sparse_layer(*dense), dense, random_tensor(input_of(of.shape), "x"), of.compute};
  pair.parts = [pair](Phase phase) { return passes_of(pair, phase); };
  pair.beside = dense_of_as_many(of, weight.mask());
  return pair;
}

Value describe_sparse(const SparseCase& of, const LayerPair& pair, Phase phase) {
  const Parameter& weight = pair.dense->parameter("weight");
  const auto kept = static_cast<double>(as_compressed(*pair.compressed)->ranks().front().value);
  Value row = Value::map();
  row.set("format", name_of(of));
  row.set("density", kept / static_cast<double>(weight.value().numel()));
  row.set("row_kept", kept_in_a_row(weight.mask()));
  row.set("shape", to_string(of.shape));
  row.set("precision", name_of(of.compute));
  row.set("phase", phase == Phase::inference ? "forward" : "training");
  row.set("weights", phase == Phase::inference ? "constant" : "changing");
  return row;
}

Value measure_sparse(const SparseTarget& target, const LayerPair& pair, Phase phase, const TurnOptions& turns,
                     double peak_gflops) {
  Value row = measure_pair(pair, describe_sparse(target.of, pair, phase), phase, turns);
  const auto set_share = [&](Value& timed, double gflops, double least) {
    timed.set("peak_share", gflops / peak_gflops);
    if (least > 0) timed.set("share_target", least);
  };
  const bool forward = phase == Phase::inference;
  set_share(row, row.at("factored").at("gflops").as_double(), forward ? target.share : 0);
  for (Value& pass : row.find("parts")->as_list()) {
    const bool sums = pass.at("name").as_string() == "gradient of values";
    set_share(pass, pass.at("gflops").as_double(), sums ? target.sums_share : target.product_share);
  }
  row.set("fma_peak_gflops", peak_gflops);
  if (const double least = forward ? target.forward : target.training; least > 0) row.set("target", least);
  return row;
}

}  // namespace tessera::bench

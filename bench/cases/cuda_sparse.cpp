#include "bench/cases/cuda_sparse.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>

#include "bench/cases/dense_cases.h"
#include "bench/cases/sparse_cases.h"
#include "bench/rivals/cublas_rival.h"
#include "bench/rivals/cusparse_rival.h"
#include "core/device/precision.h"
#include "core/ops/sparse_by_dense.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kTokens[]{12800, 1024};
constexpr LinearShape kBertLayers[]{{0, 768, 768}, {0, 768, 3072}, {0, 3072, 768}};  // rows, one per token, are set later

// Rows are pixels after the layer's stride. Each repeated shape is listed once.
constexpr LinearShape kMobileNetLayers[]{{12544, 32, 64}, {3136, 64, 128}, {3136, 128, 128}, {784, 128, 256}, {784, 256, 256},
                                         {196, 256, 512}, {196, 512, 512}, {49, 512, 1024},  {49, 1024, 1024}};

// One entry per set. The tensor that the pass computes is empty.
struct Operands {
  std::vector<Tensor> x, values, y;
  std::vector<SparseWeightPtr> weight;
};
using SharedOperands = std::shared_ptr<const Operands>;

// Sides differ in the order of their sums. In half types the rivals also round the values, and sides round outputs in different
// places: to 2^-9 in bf16, to 2^-12 in f16.
double tolerance_of(DType dtype) {
  if (dtype == DType::f32) return 1e-3;
  return dtype == DType::bf16 ? 2e-2 : 5e-3;
}

SharedOperands operands_of(ConvPass pass, const LinearShape& shape, const Tensor& mask, DType dtype, Device device) {
  const SparseWeight weight(mask);
  const auto elements = static_cast<double>(shape.rows * (shape.in + shape.out));
  const double of_a_kept_one = sizeof(float) + sizeof(std::int32_t);
  const std::size_t sets =
      sets_beyond_caches(elements * static_cast<double>(size_of(dtype)) + static_cast<double>(weight.count()) * of_a_kept_one);
  const auto operand = [&](bool written, const Shape& of, const char* name, DType type) {
    return written ? empty_sets(of, type, device, sets) : random_sets(of, name, type, device, sets);
  };
  Operands made{operand(pass == ConvPass::backward_input, {shape.rows, shape.in}, "x", dtype),
                operand(pass == ConvPass::backward_weight, {weight.count()}, "values", DType::f32),
                operand(pass == ConvPass::forward, {shape.rows, shape.out}, "y", dtype),
                {}};
  for (std::size_t set = 0; set < sets; ++set) made.weight.push_back(std::make_shared<const SparseWeight>(mask));
  return std::make_shared<const Operands>(std::move(made));
}

const Tensor& output_of(ConvPass pass, const Operands& t) {
  if (pass == ConvPass::forward) return t.y.front();
  return pass == ConvPass::backward_input ? t.x.front() : t.values.front();
}

RotatedSide our_side(ConvPass pass, const SharedOperands& t) {
  const auto run = [=](std::size_t set) {
    const Tf32Products exact(false);
    const SparseWeight& weight = *t->weight[set];
    switch (pass) {
      case ConvPass::forward: return cuda::sparse_forward(t->x[set], t->values[set], weight, {}, t->y[set], {}, false);
      case ConvPass::backward_input: return cuda::sparse_backward_input(t->y[set], t->values[set], weight, t->x[set], {});
      case ConvPass::backward_weight: return cuda::sparse_backward_values(t->x[set], t->y[set], weight, t->values[set], {}, {});
    }
  };
  return {"tessera", run, output_of(pass, *t)};
}

RotatedSide our_dense_side(ConvPass pass, const SharedOperands& t) {
  const auto run = [=](std::size_t set) {
    const Tf32Products exact(false);
    const SparseWeight& weight = *t->weight[set];
    switch (pass) {
      case ConvPass::forward: return sparse_forward_by_dense(t->x[set], t->values[set], weight, {}, t->y[set], {}, false);
      case ConvPass::backward_input: return sparse_backward_input_by_dense(t->y[set], t->values[set], weight, t->x[set], {});
      case ConvPass::backward_weight:
        return sparse_backward_values_by_dense(t->x[set], t->y[set], weight, t->values[set], {}, {});
    }
  };
  return {"tessera, dense", run, output_of(pass, *t)};
}

// Picks the gradient of the kept values from the gradient of a dense weight.
std::function<Tensor(const Tensor&)> kept_of(const SparseWeightPtr& weight) {
  return [weight](const Tensor& dense) {
    const Tensor values = Tensor::empty({weight->count()}, DType::f32, dense.device());
    cuda::gather_values(dense.to(DType::f32), weight->positions(dense.device()), values);
    return values;
  };
}

// Products with the dense composed weight, or those that give its whole gradient. Weight and gradient have the dtype of x.
std::vector<RotatedSide> dense_sides(ConvPass pass, const LinearShape& shape, const Operands& t) {
  const auto [rows, in, out] = shape;
  std::vector<Product> products;
  for (std::size_t set = 0; set < t.x.size(); ++set) {
    const Tensor& x = t.x[set];
    const Tensor& y = t.y[set];
    if (pass == ConvPass::backward_weight) {
      products.push_back({{out, in, rows}, y, x, Tensor::empty({out, in}, x.dtype(), x.device()), true});
      continue;
    }
    const Tensor weight = composed_weight(t.values[set], *t.weight[set]).to(x.dtype());
    if (pass == ConvPass::forward) products.push_back({{rows, out, in}, x, weight, y, false, true});
    if (pass == ConvPass::backward_input) products.push_back({{rows, in, out}, y, weight, x});
  }
  std::vector<RotatedSide> sides = cublas_rivals(products, false);
  if (pass == ConvPass::backward_weight) {
    for (RotatedSide& side : sides) side.in_order = kept_of(t.weight.front());
  }
  return sides;
}

// The size of the pattern's square blocks, 0 if it has none.
std::int64_t block_of(const PatternConfig& pattern) {
  return pattern.pattern == "block" && pattern.block && pattern.block->h == pattern.block->w ? pattern.block->h : 0;
}

void add_layers(std::vector<SparseProductCase>& cases, const PatternConfig& pattern, std::span<const double> densities,
                std::span<const LinearShape> layers) {
  for (const LinearShape& layer : layers) {
    for (const double density : densities) cases.push_back({pattern, density, layer});
  }
}

}  // namespace

std::string to_string(const SparseProductCase& of) {
  return str(to_string(of.shape), ", ", name_of(of.pattern), ", density ", of.density);
}

std::vector<SparseProductCase> cuda_sparse_cases() {
  const auto square = [](std::int64_t n) { return LinearShape{n, n, n}; };
  const PatternConfig single{.pattern = "unstructured"};
  const double of_sputnik[]{.25, .2, .15, .1, .05}, of_mobilenet[]{.1}, of_blocks[]{.1, .25, .5}, of_tiles[]{.25, .5};
  std::vector<SparseProductCase> cases;
  add_layers(cases, single, of_sputnik, std::vector{square(512), square(1024), square(2048), square(4096)});
  add_layers(cases, single, of_mobilenet, kMobileNetLayers);
  for (const std::int64_t size : {16, 32}) {
    add_layers(cases, {.pattern = "block", .block = Extent{size, size}}, of_blocks, std::vector{square(1024), square(4096)});
  }
  for (const std::int64_t tokens : kTokens) {
    for (LinearShape layer : kBertLayers) {
      layer.rows = tokens;
      for (const std::int64_t group : {64, 128}) {
        add_layers(cases, {.pattern = "tile", .group = group}, of_tiles, std::span(&layer, 1));
      }
    }
  }
  add_layers(cases, single, of_sputnik, std::vector{square(8192)});
  return cases;
}

Tensor sparse_mask(const SparseProductCase& of) {
  return pattern_mask(of.pattern, of.density, random_tensor({of.shape.out, of.shape.in}, "weight"));
}

double density_of(const Tensor& mask) {
  const std::span<const std::uint8_t> bits(mask.data<std::uint8_t>(), static_cast<std::size_t>(mask.numel()));
  return static_cast<double>(std::accumulate(bits.begin(), bits.end(), std::int64_t{0})) / static_cast<double>(mask.numel());
}

RotatedCase cuda_sparse_case(ConvPass pass, const SparseProductCase& of, const Tensor& mask, const std::string& precision,
                             Device device) {
  const DType dtype = compute_dtype(precision, device);
  const SharedOperands t = operands_of(pass, of.shape, mask, dtype, device);
  std::vector<SparseProduct> products;
  for (std::size_t set = 0; set < t->x.size(); ++set) products.push_back({t->x[set], t->values[set], t->y[set]});
  const SparseIndex& index = t->weight.front()->index();
  SparseRivals rivals = cusparse_rivals(pass, index, block_of(of.pattern), products);
  return {.op = str("sparse ", to_string(pass)),
          .shape = to_string(of),
          .pass = std::string(to_string(pass)),
          .precision = precision,
          .flops = 2 * static_cast<double>(of.shape.rows) * static_cast<double>(index.count()),
          .sets = t->x.size(),
          .ours = {our_side(pass, t), our_dense_side(pass, t)},
          .rivals = std::move(rivals.sides),
          .dense = dense_sides(pass, of.shape, *t),
          .unsupported = std::move(rivals.unsupported),
          .tolerance = tolerance_of(dtype)};
}

std::string way_of(const PatternConfig& pattern) {
  return pattern.pattern == "block" || pattern.pattern == "tile" ? "pieces" : "sparse";
}

std::string execution_of(const DecisionScope& decisions, const std::string& forced) {
  const auto of_an_op = [](const std::string& key) { return key.find("sparse.") != std::string::npos; };
  if (std::ranges::any_of(decisions.log().forced, of_an_op)) return forced;
  for (const auto& [key, choice] : decisions.taken()) {
    if (of_an_op(key)) return choice;
  }
  return "not decided";
}

}  // namespace tessera::bench

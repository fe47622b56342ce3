// Sparse layers with the masks of every pattern against the dense layer whose weight has the same mask.
#include <gtest/gtest.h>

#include "compress/patterns/builtin.h"
#include "compress/prune/scores.h"
#include "core/autograd/backward.h"
#include "core/device/decisions.h"
#include "core/ops/cast.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sparse_conv2d.h"
#include "layers/sparse_linear.h"
#include "tests/compress/patterns/masks.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

struct Pair {
  std::unique_ptr<Module> dense, sparse;
  Shape input;
};

template <class Sparse, class Layer, class Config>
Pair pair_of(const Config& config, const Pattern& pattern, double density, const Shape& input) {
  auto dense = std::make_unique<Layer>(config);
  dense->reset_parameters(3);
  dense->bias()->set_value(random_tensor(dense->bias()->value().shape(), DType::f32, 5));
  const Tensor scores = magnitudes(dense->weight().value());
  dense->weight().set_mask(pattern.project({&scores, 1}, share(density, scores.numel())).front());
  auto sparse = Sparse::of(*dense);
  return {.dense = std::move(dense), .sparse = std::move(sparse), .input = input};
}

// Tiles of 6 outputs, of which the last has 4, and blocks that do not divide the outputs.
std::vector<Pair> pairs_of(const Pattern& pattern, double density) {
  std::vector<Pair> pairs;
  pairs.push_back(pair_of<SparseLinear, Linear>(LinearConfig{.in = 40, .out = 22}, pattern, density, {37, 40}));
  pairs.push_back(pair_of<SparseConv2d, Conv2d>(
      Conv2dConfig{.in = 12, .out = 22, .kernel = {3, 3}, .stride = {2, 1}, .padding = {1, 1}}, pattern, density, {3, 9, 7, 12}));
  pairs.push_back(
      pair_of<SparseConv2d, Conv2d>(Conv2dConfig{.in = 12, .out = 22, .kernel = {1, 1}}, pattern, density, {2, 5, 7, 12}));
  return pairs;
}

// The values of a dense gradient at the mask's elements.
std::vector<double> kept_of(const Parameter& weight) {
  std::vector<double> kept;
  const std::vector<double> gradient = weight.grad().to(DType::f64).to_vector<double>();
  const std::vector<std::uint8_t> mask = weight.mask().to_vector<std::uint8_t>();
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) kept.push_back(gradient[i]);
  }
  return kept;
}

void expect_same(const Pair& pair, DType compute) {
  // Both round the same operands and sum in f32; where results are stored in bf16, two neighbours may stand for one sum.
  const double tolerance = compute == DType::bf16 ? 0x1p-7 : 1e-5;
  const Tensor x = random_tensor(pair.input, DType::f32, 1);
  const Var x1(x, true), x2(x, true);
  const Var y1 = (*pair.dense)(cast(x1, compute), {}), y2 = (*pair.sparse)(cast(x2, compute), {});
  ASSERT_EQ(y2.dtype(), compute);
  EXPECT_LE(relative_error(y2.value(), y1.value()), tolerance);
  const Tensor grad_y = random_tensor(y1.shape(), DType::f32, 2).to(compute);
  backward(y1, grad_y);
  backward(y2, grad_y);
  EXPECT_LE(relative_error(x2.grad(), x1.grad()), tolerance);
  EXPECT_LE(relative_error(pair.sparse->parameter("values").grad().to(DType::f64).to_vector<double>(),
                           kept_of(pair.dense->parameter("weight"))),
            tolerance);
  EXPECT_LE(relative_error(pair.sparse->parameter("bias").grad(), pair.dense->parameter("bias").grad()), tolerance);
}

TEST(SparseLayersOfPatterns, EqualTheMaskedDenseLayerForwardAndBothGradients) {
  for (const char* way : {"sparse", "dense"}) {
    const DecisionScope scope({.forced = way});
    for (const std::string_view name : pattern_names()) {
      PatternConfig config{.pattern = std::string(name)};
      if (name == "block") config.block = Extent{4, 4};
      if (name.starts_with("tile")) config.group = 6;
      const auto pattern = make_pattern(config);
      for (const double density : {0.25, 0.6}) {
        for (const Pair& pair : pairs_of(*pattern, density)) {
          for (const DType compute : {DType::f32, DType::bf16}) {
            SCOPED_TRACE(str(way, ' ', name, ' ', density, ' ', pair.sparse->kind(), ' ', pair.input, ' ', compute));
            expect_same(pair, compute);
            for (Module* const module : {pair.dense.get(), pair.sparse.get()}) {
              for (const auto& parameter : module->parameters()) parameter->zero_grad();
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::testing

// Sparse layers with masks of every pattern, compared with the dense layer whose weight has the same mask.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compress/patterns/builtin.h"
#include "compress/prune/scores.h"
#include "core/device/decisions.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sparse_conv2d.h"
#include "layers/sparse_linear.h"
#include "tests/compress/patterns/masks.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/sparse_reference.h"

namespace tessera::testing {
namespace {

struct Pair {
  std::unique_ptr<Module> dense, sparse;
  Shape input;
};

// Adds a pair of layers if the weight can have the pattern.
template <class Sparse, class Layer, class Config>
void add_pair(std::vector<Pair>& pairs, const Config& config, const Pattern& pattern, double density, const Shape& input) {
  auto dense = std::make_unique<Layer>(config);
  if (!pattern.why_not(dense->weight().value().shape()).empty()) return;
  dense->reset_parameters(3);
  dense->bias()->set_value(random_tensor(dense->bias()->value().shape(), DType::f32, 5));
  const Tensor scores = magnitudes(dense->weight().value());
  dense->weight().set_mask(pattern.project({&scores, 1}, share(density, scores.numel())).front());
  auto sparse = Sparse::of(*dense);
  pairs.push_back({.dense = std::move(dense), .sparse = std::move(sparse), .input = input});
}

// Tiles of 6 outputs (the last of 4), blocks that do not divide the outputs, odd sizes, and weights of few elements.
std::vector<Pair> pairs_of(const Pattern& pattern, double density) {
  std::vector<Pair> pairs;
  const auto linear = [&](std::int64_t in, std::int64_t out, std::int64_t rows) {
    add_pair<SparseLinear, Linear>(pairs, LinearConfig{.in = in, .out = out}, pattern, density, {rows, in});
  };
  linear(40, 22, 37);
  linear(13, 7, 5);
  linear(4, 1, 3);
  linear(1, 1, 1);
  const auto conv = [&](const Conv2dConfig& config, const Shape& input) {
    add_pair<SparseConv2d, Conv2d>(pairs, config, pattern, density, input);
  };
  conv({.in = 12, .out = 22, .kernel = {3, 3}, .stride = {2, 1}, .padding = {1, 1}}, {3, 9, 7, 12});
  conv({.in = 12, .out = 22, .kernel = {1, 1}}, {2, 5, 7, 12});
  conv({.in = 5, .out = 3, .kernel = {3, 1}, .padding = {1, 0}}, {1, 3, 5, 5});
  return pairs;
}

TEST(SparseLayersOfPatterns, EqualTheMaskedDenseLayerForwardAndBothGradients) {
  for (const char* way : {"sparse", "dense"}) {
    const DecisionScope scope({.forced = way});
    for (const std::string_view name : pattern_names()) {
      PatternConfig config{.pattern = std::string(name)};
      if (name == "block") config.block = Extent{4, 4};
      if (name.starts_with("tile")) config.group = 6;
      const auto pattern = make_pattern(config);
      for (const double density : {0.0, 0.004, 0.25, 0.6, 1.0}) {  // nothing, fewer than 4 elements of most weights, and all
        for (const Pair& pair : pairs_of(*pattern, density)) {
          for (const DType compute : {DType::f32, DType::bf16}) {
            SCOPED_TRACE(str(way, ' ', name, ' ', density, ' ', pair.sparse->kind(), ' ', pair.input, ' ', compute));
            expect_same_layer(*pair.sparse, *pair.dense, pair.input, compute);
            for (Module* const module : {pair.dense.get(), pair.sparse.get()}) {
              for (const auto& parameter : module->parameters()) parameter->zero_grad();
            }
          }
        }
      }
    }
    // The products that ran in this round's way.
    const std::set<std::string>& taken = scope.log().forced;
    for (const char* const pass : {"forward", "backward_input", "backward_weight"}) {
      for (const char* const layer : {" linear ", " conv2d "}) {
        const auto is_one = [&](const std::string& key) { return key.starts_with(str("sparse.", pass, layer)); };
        EXPECT_GE(std::count_if(taken.begin(), taken.end(), is_one), 10) << way << ' ' << pass << layer;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::testing

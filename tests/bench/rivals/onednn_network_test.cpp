// The network built from oneDNN's primitives computes what our ops do, in both layouts and on every run.
#include "bench/rivals/onednn_network.h"

#include <gtest/gtest.h>

#include "core/ops/arithmetic.h"
#include "core/ops/conv2d.h"
#include "core/ops/linear.h"
#include "core/ops/pool2d.h"
#include "core/ops/relu.h"
#include "core/rng.h"
#include "tests/support/relative_error.h"

namespace tessera::bench {
namespace {

Tensor random(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(5, "onednn_network_test", "values"), -1, 1, index);
  return x;
}

class OnednnNetworkTest : public ::testing::TestWithParam<OnednnNetwork::Layout> {};

TEST_P(OnednnNetworkTest, AgreesWithOurOps) {
  const Tensor x = random({2, 19, 17, 3}, 0);
  const Tensor stem = random({32, 3, 3, 3}, 1);
  const Tensor stem_bias = random({32}, 2);
  const Tensor narrow = random({16, 1, 1, 32}, 3);
  const Tensor wide = random({32, 3, 3, 16}, 4);
  const Tensor wide_bias = random({32}, 5);
  const Tensor weight = random({7, 32}, 6);
  const Tensor bias = random({7}, 7);
  const Conv2dOptions same{.padding = {1, 1}};
  const auto expected = [&] {
    const NoGrad no_grad;
    Var y = relu(conv2d(Var(x), Var(stem), Var(stem_bias), {.stride = {2, 1}, .padding = {1, 1}}));
    y = max_pool2d(y, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    y = relu(add(conv2d(conv2d(y, Var(narrow)), Var(wide), Var(wide_bias), same), y));
    return linear(global_avg_pool(y), Var(weight), Var(bias)).value();
  };

  OnednnNetwork network(x, GetParam());
  OnednnNetwork::Image y = network.convolve(0, stem, {.bias = stem_bias, .relu = true}, {.stride = {2, 1}, .padding = {1, 1}});
  y = network.max_pool(y, {3, 3}, {2, 2}, {1, 1});
  const OnednnNetwork::Image between = network.convolve(y, narrow, {});
  y = network.convolve(between, wide, {.bias = wide_bias, .residual = y, .relu = true}, same);
  y = network.product(network.average(y), weight, bias);
  for (int run = 0; run < 2; ++run) {
    network.run();
    EXPECT_LE(relative_error(network.values(y), expected()), 1e-5) << "run " << run;
  }
  fill_uniform(x, RngStream(5, "onednn_network_test", "values"), -1, 1, 8);
  network.run();
  EXPECT_LE(relative_error(network.values(y), expected()), 1e-5) << "another input";
}

INSTANTIATE_TEST_SUITE_P(Layouts, OnednnNetworkTest,
                         ::testing::Values(OnednnNetwork::Layout::chosen, OnednnNetwork::Layout::blocks));

}  // namespace
}  // namespace tessera::bench

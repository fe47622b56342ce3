// Properties of the dense operations beyond the case table: errors, running statistics, primitive reuse, ties.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/autograd/numeric_check.h"
#include "core/cpu/onednn.h"
#include "core/device/memory_history.h"
#include "core/ops/arithmetic.h"
#include "core/ops/batch_norm.h"
#include "core/ops/conv2d.h"
#include "core/ops/layer_norm.h"
#include "core/ops/linear.h"
#include "core/ops/matmul.h"
#include "core/ops/pool2d.h"
#include "core/ops/relu.h"
#include "core/rng.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

Tensor random(const Shape& shape, std::uint64_t index, DType dtype, double low = -1, double high = 1) {
  const Tensor x = Tensor::empty(shape, dtype);
  fill_uniform(x, RngStream(11, "dense_contract_test", "values"), low, high, index);
  return x;
}

Var ones(const Shape& shape, DType dtype = DType::f32) { return Var(Tensor::full(shape, 1.0, dtype)); }

TEST(OneDnn, BuildsPrimitivesForConvolutionAndKeepsThemPerThreadCount) {
  const Var x = ones({2, 5, 5, 16});
  const Var weight = ones({16, 3, 3, 16});
  const auto built_by = [&] {
    const std::size_t before = cpu::onednn::primitives_built();
    conv2d(x, weight);
    return cpu::onednn::primitives_built() - before;
  };
  const int threads = omp_get_max_threads();
  built_by();
  EXPECT_EQ(built_by(), 0u);
  omp_set_num_threads(threads + 1);
  EXPECT_EQ(built_by(), 1u);
  omp_set_num_threads(threads);
  EXPECT_EQ(built_by(), 0u);
}

TEST(Conv2d, SkipsTheGradientNobodyNeeds) {
  const Var x(random({2, 5, 5, 3}, 1, DType::f32));
  const Var weight(random({4, 3, 3, 3}, 2, DType::f32), true);
  const Var y = conv2d(x, weight);
  const std::size_t before = cpu::onednn::primitives_built();
  backward(y, random(y.shape(), 3, DType::f32));
  EXPECT_EQ(cpu::onednn::primitives_built() - before, 1u);  // only the weight gradient
  EXPECT_FALSE(x.grad().defined());
}

TEST(Conv2d, ReadsStridedInputs) {
  const Tensor nchw = random({2, 3, 6, 5}, 1, DType::f32);
  const Tensor view = nchw.permute({0, 2, 3, 1});
  const Var weight(random({4, 3, 3, 3}, 2, DType::f32));
  EXPECT_EQ(conv2d(Var(view), weight).value().to_vector<float>(), conv2d(Var(view.clone()), weight).value().to_vector<float>());
}

TEST(Conv2d, NamesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              conv2d(ones({8, 32, 32, 3}), ones({16, 3, 3, 4}));
            }),
            "conv2d: input channels differ: x is [8, 32, 32, 3], weight is [16, 3, 3, 4], groups 1; x.dim(-1) must equal "
            "weight.dim(-1) * groups");
  EXPECT_EQ(message_of<ShapeError>([] {
              conv2d(ones({1, 4, 4, 4}), ones({3, 3, 3, 2}), {}, {.groups = 2});
            }),
            "conv2d: illegal groups: weight is [3, 3, 3, 2], groups 2; groups must be at least 1 and divide weight.dim(0)=3");
  EXPECT_EQ(
      message_of<ShapeError>([] {
        conv2d(ones({1, 2, 4, 1}), ones({1, 3, 3, 1}));
      }),
      "conv2d: window larger than the padded height: height is 2, padding 0, kernel 3, dilation 1; height + 2 * padding must "
      "be at least dilation * (kernel - 1) + 1");
  const Shape point{1, 1, 1, 1};
  constexpr std::int64_t kBillion = 1'000'000'000;
  EXPECT_EQ(message_of<ShapeError>([&] { conv2d_output_shape(point, point, {.padding = {0, 4 * kBillion}}); }),
            "conv2d: window along the width too large: width is 1, kernel 1, stride 1, padding 4000000000, dilation 1; each must "
            "fit in 31 bits");
  EXPECT_EQ(message_of<ShapeError>([&] { conv2d_output_shape(point, point, {.padding = {kBillion, kBillion}}); }),
            "conv2d: result too large: [1, 2000000001, 2000000001, 1]; must have at most 2^40 elements");
  EXPECT_EQ(message_of<ShapeError>([] {
              conv2d(ones({1, 3, 3, 1}), ones({2, 3, 3, 1}), ones({3}));
            }),
            "conv2d: bias does not fit: weight is [2, 3, 3, 1], bias is [3]; bias must be [weight.dim(0)]");
  EXPECT_EQ(message_of<DTypeError>([] {
              conv2d(ones({1, 3, 3, 1}), ones({2, 3, 3, 1}, DType::f64));
            }),
            "conv2d: dtypes differ: x is f32 [1, 3, 3, 1] on cpu, weight is f64 [2, 3, 3, 1] on cpu; all must be equal");
}

TEST(Matmul, NamesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              matmul(ones({32, 784}), ones({512, 10}));
            }),
            "matmul: inner dimensions differ: a is [32, 784], b is [512, 10]; a.dim(-1)=784 must equal b.dim(-2)=512");
  EXPECT_EQ(message_of<ShapeError>([] {
              matmul(ones({3}), ones({3, 2}));
            }),
            "matmul: too few dimensions: a is [3], b is [3, 2]; both need at least 2");
  EXPECT_THROW(matmul(ones({2, 3, 4}), ones({3, 4, 5})), ShapeError);
}

TEST(Linear, NamesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              linear(ones({4, 3}), ones({2, 5}));
            }),
            "linear: input features differ: x is [4, 3], weight is [2, 5]; x.dim(-1)=3 must equal weight.dim(1)=5");
  EXPECT_THROW(linear(ones({4, 3}), ones({2, 3}), ones({3})), ShapeError);
}

TEST(Pool2d, FirstMaximumTakesTheGradientAndNanWins) {
  const Var x(Tensor::from<float>({1, 1, 1, 1}, {1, 2, 2, 1}), true);
  backward(max_pool2d(x));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{1, 0, 0, 0}));
  const Var with_nan(Tensor::from<float>({1, NAN, 5, 2}, {1, 2, 2, 1}));
  EXPECT_TRUE(std::isnan(max_pool2d(with_nan).value().item()));
}

TEST(Pool2d, NamesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              max_pool2d(ones({1, 4, 4, 1}), {.padding = {2, 0}});
            }),
            "max_pool2d: too much padding: kernel is 2x2, padding 2x0; padding must be at most half the kernel");
  EXPECT_EQ(message_of<ShapeError>([] {
              global_avg_pool(ones({2, 3}));
            }),
            "global_avg_pool: wrong shape: x is [2, 3]; x must be [n, h, w, c] with at least 1 pixel");
}

TEST(BatchNorm, UpdatesRunningStatisticsWithTheUnbiasedVariance) {
  const Var x(Tensor::from<float>({1, 10, 3, 20, 5, 60}, {3, 2}));
  const Tensor mean = Tensor::from<float>({1, 2}, {2});
  const Tensor var = Tensor::from<float>({3, 4}, {2});
  batch_norm(x, ones({2}), ones({2}), mean, var, {.training = true, .momentum = 0.25});
  EXPECT_FLOAT_EQ(mean.data<float>()[0], 0.75f * 1 + 0.25f * 3);
  EXPECT_FLOAT_EQ(mean.data<float>()[1], 0.75f * 2 + 0.25f * 30);
  EXPECT_FLOAT_EQ(var.data<float>()[0], 0.75f * 3 + 0.25f * 4);
  EXPECT_FLOAT_EQ(var.data<float>()[1], 0.75f * 4 + 0.25f * 700);
}

TEST(BatchNorm, InferenceUsesAndKeepsRunningStatistics) {
  const Var x(Tensor::from<double>({1, 2, 3, 4}, {2, 2}), true);
  const Tensor mean = Tensor::from<double>({1, 0}, {2});
  const Tensor var = Tensor::from<double>({4, 1}, {2});
  const Var gamma(Tensor::from<double>({2, 3}, {2}), true);
  const Var beta(Tensor::from<double>({0, 1}, {2}), true);
  const Var y = batch_norm(x, gamma, beta, mean, var, {.training = false, .eps = 0});
  EXPECT_EQ(y.value().to_vector<double>(), (std::vector<double>{0, 7, 2, 13}));
  backward(y, Tensor::from<double>({1, 1, 1, 2}, {2, 2}));
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{1, 3, 1, 6}));
  EXPECT_EQ(gamma.grad().to_vector<double>(), (std::vector<double>{1, 10}));
  EXPECT_EQ(beta.grad().to_vector<double>(), (std::vector<double>{2, 3}));
  EXPECT_EQ(mean.to_vector<double>(), (std::vector<double>{1, 0}));
  EXPECT_EQ(var.to_vector<double>(), (std::vector<double>{4, 1}));
}

TEST(BatchNorm, SurvivesAMeanFarAboveTheDeviation) {
  const Tensor x = random({5000, 16}, 1, DType::f32, 4000, 4001);
  const Tensor zero = Tensor::zeros({16});
  const Var y = batch_norm(Var(x), ones({16}), Var(zero), Tensor::zeros({16}), zero.clone(), {.training = true});
  double squares = 0;
  for (const float value : y.value().to_vector<float>()) squares += static_cast<double>(value) * static_cast<double>(value);
  // A one-pass sum of squares in f32 would be off by whole units. The inputs themselves are rounded to 2e-4.
  EXPECT_NEAR(squares / static_cast<double>(y.value().numel()), 1.0, 1e-3);
}

TEST(BatchNorm, NamesWhatDoesNotFit) {
  const Tensor stats = Tensor::zeros({3});
  EXPECT_EQ(message_of<ShapeError>([&] {
              batch_norm(ones({2, 3}), ones({2}), ones({3}), stats, stats, {.training = true});
            }),
            "batch_norm: gamma does not fit: x is [2, 3], gamma is [2]; gamma must be [x.dim(-1)]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              batch_norm(ones({2, 3}), ones({3}), ones({3}), stats, stats, {.training = true}, ones({2, 1}));
            }),
            "batch_norm: residual does not fit: x is [2, 3], residual is [2, 1]; the shapes must be equal");
}

struct Tail {
  bool fused;
  bool residual;
  bool owned;  // only the norm holds the incoming gradient, so it writes its result over it
  bool nan = false;  // some ReLU inputs are NaN, and their gradient passes
};

// Makes NaN comparable with itself by replacing it by infinity; no other value here is infinite.
std::vector<float> comparable(const Tensor& x) {
  std::vector<float> values = x.to_vector<float>();
  std::ranges::replace_if(
      values, [](float value) { return std::isnan(value); }, std::numeric_limits<float>::infinity());
  return values;
}

// y, the running statistics and all gradients of relu(batch_norm(x) + residual) * weight.
std::vector<std::vector<float>> run_tail(const Tail& tail) {
  const Var x(random({3, 7, 5, 19}, 1, DType::f32), true);
  const Var residual(random({3, 7, 5, 19}, 2, DType::f32), true);
  const Var gamma(random({19}, 3, DType::f32), true);
  const Var beta(random({19}, 4, DType::f32), true);
  if (tail.nan) {  // no residual: backward recomputes the ReLU's input, so a whole channel within a block of vectors is NaN
    for (const std::int64_t at : {3, 300}) residual.value().data<float>()[at] = NAN;
    beta.value().data<float>()[tail.residual ? 18 : 2] = NAN;
  }
  const Tensor mean = Tensor::zeros({19});
  const Tensor var = Tensor::full({19}, 1);
  const Var added = tail.residual ? residual : Var();
  const auto plain = [&] {
    const Var y = batch_norm(x, gamma, beta, mean, var, {.training = true});
    return relu(tail.residual ? add(y, residual) : y);
  };
  const Var y = tail.fused ? batch_norm(x, gamma, beta, mean, var, {.training = true, .relu = true}, added) : plain();
  const Tensor grad = random(y.shape(), 5, DType::f32);
  if (tail.owned) {
    backward(mul(y, Var(Tensor::full(y.shape(), 1))), grad);
  } else {
    backward(y, grad);
  }
  EXPECT_EQ(std::isnan(y.value().data<float>()[tail.residual ? 3 : 2]), tail.nan);
  std::vector<std::vector<float>> all{comparable(y.value()), grad.to_vector<float>(), mean.to_vector<float>(),
                                      var.to_vector<float>()};
  for (const Var& leaf : {x, gamma, beta}) all.push_back(comparable(leaf.grad()));
  if (tail.residual) all.push_back(comparable(residual.grad()));
  return all;
}

TEST(BatchNorm, FusedTailEqualsTheThreeOps) {
  for (const auto& [residual, nan] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    const auto want = run_tail({.fused = false, .residual = residual, .owned = false, .nan = nan});
    for (const bool owned : {false, true}) {
      for (const bool fused : {false, true}) {
        EXPECT_EQ(run_tail({.fused = fused, .residual = residual, .owned = owned, .nan = nan}), want)
            << "residual " << residual << " NaN " << nan << " owned " << owned << " fused " << fused;
      }
    }
  }
}

TEST(BatchNorm, LeavesAGradientAloneThatAnotherOpIsToRead) {
  const Tensor stats = Tensor::full({4}, 1);
  const auto run = [&](bool checked) {
    std::optional<NumericCheck> check;  // keeps every gradient, so that none is overwritten
    if (checked) check.emplace();
    std::vector<Var> leaves{Var(random({6, 4}, 1, DType::f32), true), Var(random({6, 4}, 2, DType::f32), true)};
    const auto norm = [&](const Var& x) {
      return batch_norm(x, ones({4}), ones({4}), stats.clone(), stats.clone(), {.training = true});
    };
    const Var sum = add(norm(leaves[0]), add(norm(leaves[1]), leaves[0]));
    backward(mul(sum, Var(random({6, 4}, 3, DType::f32))), random({6, 4}, 4, DType::f32));
    return std::pair(leaves[0].grad().to_vector<float>(), leaves[1].grad().to_vector<float>());
  };
  EXPECT_EQ(run(false), run(true));
}

// The number of blocks that a call takes from the allocator, and thus from the limit and the plan.
std::size_t blocks_of(const std::function<void()>& call) {
  const MemoryHistory history(Device::cpu());
  call();
  return history.in_use().size();
}

TEST(Pool2d, SumsBesideBf16AreTensors) {
  const Pool2dOptions options{.kernel = {3, 3}, .stride = {2, 2}};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor image = random({3, 9, 9, 5}, 1, DType::f32).to(dtype);
    const Tensor y = random({3, 4, 4, 5}, 2, DType::f32).to(dtype);
    const Tensor argmax = Tensor::zeros({3, 4, 4, 5}, DType::i32);
    const std::size_t wide = dtype == DType::bf16 ? 1 : 0;
    EXPECT_EQ(blocks_of([&] { cpu::avg_pool2d_forward(image, y, options); }), wide);
    EXPECT_EQ(blocks_of([&] { cpu::avg_pool2d_backward(y, image, options); }), wide);
    EXPECT_EQ(blocks_of([&] { cpu::max_pool2d_backward(y, argmax, image, options); }), wide);
    const Tensor mean = random({3, 5}, 3, DType::f32).to(dtype);
    EXPECT_EQ(blocks_of([&] { cpu::global_avg_pool_forward(image, mean); }), 1u) << "doubles";
  }
}

TEST(LayerNorm, NamesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              layer_norm(ones({2, 3}), ones({3}), ones({4}));
            }),
            "layer_norm: beta does not fit: x is [2, 3], beta is [4]; beta must be [x.dim(-1)]");
}

}  // namespace
}  // namespace tessera

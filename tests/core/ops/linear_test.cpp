// The forward pass of linear at inference: a ReLU fused into the product, and weights that are packed once.
#include "core/ops/linear.h"

#include <gtest/gtest.h>

#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/cpu/cache_sweep.h"
#include "core/cpu/machine_memory.h"
#include "core/cpu/panels/product.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/ops/conv2d.h"
#include "core/ops/matmul_plan_cpu.h"
#include "core/ops/relu.h"
#include "core/ops/row_product_cpu.h"
#include "core/rng.h"
#include "tests/support/peak_growth.h"
#include "tests/support/relative_error.h"

namespace tessera {
namespace {

Tensor random(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(11, "linear_test", "values"), -1, 1, index);
  return x;
}

Tensor in_f64(const Tensor& x) { return x.defined() ? x.to(DType::f64) : x; }

Tensor forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu) {
  const Tensor y = Tensor::full({x.dim(0), weight.dim(0)}, -7, x.dtype());
  cpu::linear_forward(x, weight, bias, y, relu);
  return y;
}

TEST(Linear, RectifiesWithAndWithoutBiasAndScope) {
  for (const Shape& sizes : {Shape{1, 37, 19}, Shape{23, 37, 19}, Shape{64, 64, 64}, Shape{3, 0, 5}, Shape{0, 3, 5}}) {
    const Tensor weight = random({sizes[2], sizes[1]}, 1);
    for (const Tensor& bias : {Tensor(), random({sizes[2]}, 2)}) {
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
        SCOPED_TRACE(str(dtype, " rows, in, out ", sizes, " bias ", bias.defined()));
        const Tensor x = random({sizes[0], sizes[1]}, 0).to(dtype);
        const auto kept = [&](const Tensor& t) { return dtype == DType::f64 ? in_f64(t) : t; };
        const Tensor plain = forward(in_f64(x), in_f64(weight), in_f64(bias), false);
        const Tensor want = relu(Var(plain)).value();
        const double tolerance = dtype == DType::bf16 ? 2e-2 : 1e-5;
        EXPECT_LE(relative_error(forward(x, kept(weight), kept(bias), true), want), tolerance);
        const ConstantWeights constant;
        for (int call = 0; call < 2; ++call) {
          EXPECT_LE(relative_error(forward(x, kept(weight), kept(bias), true), want), tolerance) << "constant, call " << call;
          EXPECT_LE(relative_error(forward(x, kept(weight), kept(bias), false), plain), tolerance) << "constant, call " << call;
        }
      }
    }
  }
}

// Writes a weight against the promise, which shows that calls use what was derived from it before.
template <class Answer>
void expect_kept_in_a_scope(const Tensor& weight, const Answer& answer) {
  const std::vector<float> before = answer();
  {
    const ConstantWeights constant;
    const std::vector<float> first = answer();
    weight.fill(0.5);
    EXPECT_EQ(answer(), first);
  }
  EXPECT_NE(answer(), before) << "outside of the scope the weight is read again";
}

TEST(Linear, AScopeKeepsTheRoundedWeightOfAProductOverPixels) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "without AVX-512 oneDNN has no bf16 product: it runs widened, in f32";
  const NoGrad no_grad;
  const Var x(random({2, 7, 5, 33}, 0).to(DType::bf16));
  for (const Var& bias : {Var(), Var(random({31}, 2))}) {
    const Tensor weight = random({31, 1, 1, 33}, 1);
    const auto answer = [&] { return conv2d_relu(x, Var(weight), bias, Var()).value().to(DType::f32).to_vector<float>(); };
    SCOPED_TRACE(str("bias ", bias.defined()));
    expect_kept_in_a_scope(weight, answer);
  }
}

TEST(Linear, WeightsOutsideOfAScopeAreReadInEveryCall) {
  const Tensor x = random({8, 16}, 0);
  const Tensor weight = random({8, 16}, 1);
  const Tensor bias = random({8}, 2);
  forward(x, weight, bias, true);
  weight.fill(0);
  EXPECT_EQ(forward(x, weight, bias, true).to_vector<float>(), relu(Var(bias.expand({8, 8}))).value().to_vector<float>());
}

// Forces each way that a clock may choose for a single row in turn.
class LinearRow : public ::testing::TestWithParam<std::string> {};

TEST_P(LinearRow, AgreesWithTheReference) {
  const DecisionScope scope({.forced = GetParam()});
  for (const auto& [in, out] : {std::pair{1024, 128}, {128, 1024}, {509, 211}, {7, 8209}, {60013, 1}}) {
    const Tensor x = random({1, in}, 0);
    const Tensor weight = random({out, in}, 1);
    for (const Tensor& bias : {Tensor(), random({out}, 2)}) {
      for (const bool relu : {false, true}) {
        SCOPED_TRACE(str(in, " to ", out, " bias ", bias.defined(), " relu ", relu));
        const Tensor got = forward(x, weight, bias, relu);
        EXPECT_LE(relative_error(got, forward(in_f64(x), in_f64(weight), in_f64(bias), relu)), 1e-5);
        if (GetParam() == "library") continue;
        const Tensor ours = Tensor::empty(got.shape());
        for (const int threads : {1, 3}) {
          cpu::row_product(x, weight, bias, ours, relu, threads);
          EXPECT_EQ(got.to_vector<float>(), ours.to_vector<float>()) << threads << " threads";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, LinearRow, ::testing::Values("library", "one_thread", "team"),
                         [](const auto& test) { return test.param; });

double largest(const Tensor& x) {
  double result = 0;
  for (const double value : x.to_vector<double>()) result = std::max(result, std::abs(value));
  return result;
}

// The row is bf16, and the f32 weight is kept in bf16 while it is constant.
TEST_P(LinearRow, AgreesWithTheReferenceInBf16) {
  const DecisionScope scope({.forced = GetParam()});
  for (const auto& [in, out] : {std::pair{1024, 128}, {509, 211}, {7, 8209}, {60013, 1}}) {
    const Tensor x = random({1, in}, 0).to(DType::bf16);
    const Tensor weight = random({out, in}, 1);
    for (const Tensor& bias : {Tensor(), random({out}, 2)}) {
      for (const bool relu : {false, true}) {
        SCOPED_TRACE(str(in, " to ", out, " bias ", bias.defined(), " relu ", relu));
        const Tensor rounded = weight.to(DType::bf16);
        const ConstantWeights constant;
        const Tensor got = forward(x, weight, bias, relu);
        // The result is rounded by at most 2^-8: products of bf16 are exact in f32. Without AVX-512 the library also rounds the
        // product before it adds the bias.
        const auto exact = [&](const Tensor& added, bool rectified) {
          return forward(in_f64(x), in_f64(rounded), in_f64(added), rectified);
        };
        double bound = 4e-3;
        if (GetParam() == "library" && bias.defined() && !__builtin_cpu_supports("avx512bw")) {
          bound *= 1 + largest(exact({}, false)) / largest(exact(bias, false));
        }
        EXPECT_LE(relative_error(got, exact(bias, relu)), bound);
        if (GetParam() == "library") continue;
        const Tensor ours = Tensor::empty(got.shape(), DType::bf16);
        for (const int threads : {1, 3}) {
          cpu::row_product(x, rounded, bias, ours, relu, threads);
          EXPECT_EQ(got.to(DType::f32).to_vector<float>(), ours.to(DType::f32).to_vector<float>()) << threads << " threads";
        }
      }
    }
  }
}

TEST(Linear, AChoiceForOneRowIsRecordedAndReplayed) {
  const Tensor x = random({1, 509}, 0);
  const Tensor weight = random({211, 509}, 1);
  DecisionMap taken;
  {
    const DecisionScope scope({.measure = true});
    forward(x, weight, {}, false);
    forward(random({1, 7}, 0), random({5, 7}, 1), {}, false);  // too small for a clock
    forward(random({2, 509}, 0), weight, {}, false);
    taken = scope.taken();
  }
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken.begin()->first.substr(0, 36), "linear.row in509 out211 bias0 thread");
  taken.begin()->second = "one_thread";  // a choice that shows that the record is obeyed
  const DecisionScope replay({.measure = true, .known = taken, .on_measured = [](const std::string& key, const std::string&) {
                                ADD_FAILURE() << "measured " << key;
                              }});
  const Tensor ours = Tensor::empty({1, 211});
  cpu::row_product(x, weight, {}, ours, false, 1);
  EXPECT_EQ(forward(x, weight, {}, false).to_vector<float>(), ours.to_vector<float>());
}

// Our loops read a kept weight of at least 1 MiB. The library reads smaller weights, and weights that are not kept.
TEST(Linear, WithoutAClockALargeKeptWeightOfOneRowIsReadByOurLoops) {
  const Tensor x = random({1, 512}, 0);
  const auto ours = [&](const Tensor& weight) {
    const Tensor y = Tensor::empty({1, weight.dim(0)});
    cpu::row_product(x, weight, {}, y, false, 1);
    return y.to_vector<float>();
  };
  const auto takes_ours = [&](const Tensor& weight) { return forward(x, weight, {}, false).to_vector<float>() == ours(weight); };
  const Tensor large = random({512, 512}, 1), small = random({511, 512}, 1);
  EXPECT_FALSE(takes_ours(large));
  const ConstantWeights kept;
  EXPECT_TRUE(takes_ours(large));
  EXPECT_FALSE(takes_ours(small));
  const ThreadDecisions nothing_known({});
  EXPECT_TRUE(takes_ours(large));
  EXPECT_FALSE(takes_ours(small));
}

TEST(Linear, ARecordOfTheLibraryIsObeyedForALargeKeptWeight) {
  const Tensor x = random({1, 512}, 0), weight = random({512, 512}, 1);
  const ConstantWeights kept;
  DecisionMap taken;
  {
    const DecisionScope scope({.measure = true});
    forward(x, weight, {}, false);
    taken = scope.taken();
  }
  ASSERT_EQ(taken.size(), 1u);
  const auto answer = [&](const std::string& way) {
    taken.begin()->second = way;
    const DecisionScope replay({.known = taken});
    return forward(x, weight, {}, false).to_vector<float>();
  };
  const Tensor ours = Tensor::empty({1, 512});
  cpu::row_product(x, weight, {}, ours, false, 1);
  EXPECT_EQ(answer("team"), ours.to_vector<float>());
  EXPECT_NE(answer("library"), ours.to_vector<float>());
}

// The measurement sweeps the caches, which takes more memory than everything else here.
TEST(Linear, AClockReadsALargeKeptWeightFromMemoryAndARecordTakesNone) {
  const Tensor x = random({1, 512}, 0), large = random({512, 512}, 1), small = random({511, 512}, 1);
  const ConstantWeights kept;
  const std::size_t sweep = cpu::bytes_beyond_caches(std::size_t{16} << 20, std::size_t{256} << 20);
  DecisionMap taken;
  const auto growth = [&](const Tensor& weight) {
    const DecisionScope scope({.measure = true, .known = taken});
    const std::optional<std::size_t> grown = peak_growth([&] { forward(x, weight, {}, false); });
    taken = scope.taken();
    return grown;
  };
  const std::optional<std::size_t> measured = growth(large);
  if (!measured) GTEST_SKIP() << "the system does not start its count of the most memory again";
  EXPECT_GT(*measured, sweep / 2);
  EXPECT_LT(*growth(large), sweep / 2) << "known";
  EXPECT_LT(*growth(small), sweep / 2) << "less than 1 MiB";
}

// A network that answers one sample at a time thus reads half the bytes.
TEST(Linear, AKeptWeightIsRoundedOnceForRowsOfBf16) {
  const Tensor x = random({1, 509}, 0).to(DType::bf16);
  const DecisionScope scope({.forced = "team"});
  for (const Tensor& bias : {Tensor(), random({211}, 2)}) {
    const Tensor weight = random({211, 509}, 1);
    const auto answer = [&] { return forward(x, weight, bias, false).to(DType::f32).to_vector<float>(); };
    SCOPED_TRACE(str("bias ", bias.defined()));
    expect_kept_in_a_scope(weight, answer);
    const Tensor exact = forward(in_f64(x), in_f64(weight), in_f64(bias), false);
    EXPECT_LE(relative_error(forward(x, weight, bias, false), exact), 4e-3);
    const ConstantWeights constant;
    EXPECT_LE(relative_error(forward(x, weight, bias, false), exact), 4e-3) << "constant";
  }
}

TEST(Linear, AKeptWeightIsPackedOrTransposedByRecord) {
  const Tensor x = random({513, 67}, 0);
  const Tensor weight = random({71, 67}, 1);
  const Tensor expected = forward(in_f64(x), in_f64(weight), {}, false);
  const auto products = [] { return cpu::matmul_runs("matmul") + cpu::matmul_runs("sgemm") + cpu::matmul_runs("panels"); };
  const auto key_of = [](const DecisionMap& taken) {
    const auto found = std::ranges::find_if(taken, [](const auto& each) { return each.first.starts_with("linear.constant "); });
    return found == taken.end() ? std::string() : found->first;
  };
  DecisionMap taken;
  {
    const DecisionScope scope({.measure = true});
    forward(x, weight, {}, false);  // without the promise that the weight is constant
    EXPECT_EQ(key_of(scope.taken()), "");
    const ConstantWeights promise;
    forward(x, weight, random({71}, 2), false);  // a bias follows the product
    EXPECT_EQ(key_of(scope.taken()), "");
    forward(x, weight, {}, false);
    taken = scope.taken();
  }
  const std::string key = key_of(taken);
  EXPECT_TRUE(key.starts_with("linear.constant rows513 in67 out71 threads")) << key;
  for (const std::string way : {"packed", "transposed"}) {
    taken[key] = way;
    const DecisionScope replay({.measure = true, .known = taken});
    const ConstantWeights promise;
    const std::size_t before = products();
    EXPECT_LE(relative_error(forward(x, weight, {}, false), expected), 1e-5) << way;
    EXPECT_EQ(products() > before, way == "transposed");
  }
}

// In training, a matmul or an inner product adds the bias. The weight's gradient comes with the bias's or as a separate product.
TEST(Linear, TrainsInEachWayOnRecord) {
  const Tensor x = random({257, 129}, 0), weight = random({131, 129}, 1), bias = random({131}, 2), grad_y = random({257, 131}, 3);
  const Tensor exact = forward(in_f64(x), in_f64(weight), in_f64(bias), true);
  const auto gradients = [&](DType dtype) {
    const std::array grads{Tensor::full(weight.shape(), -7, dtype), Tensor::full(bias.shape(), -7, dtype)};
    cpu::linear_backward_weight(x.to(dtype), grad_y.to(dtype), grads[0], grads[1]);
    return grads;
  };
  const std::array exact_gradients = gradients(DType::f64);
  DecisionMap taken;
  {
    const DecisionScope scope({.measure = true});
    forward(x, weight, bias, true);
    gradients(DType::f32);
    taken = scope.taken();
  }
  const std::string threads = str(" threads", omp_get_max_threads());
  const std::string forward_key = "linear.forward bias relu rows257 in129 out131" + threads;
  const std::string gradient_key = "linear.backward_weight bias rows257 in129 out131" + threads;
  ASSERT_EQ(taken.count(forward_key), 1u);
  ASSERT_EQ(taken.count(gradient_key), 1u);
  for (const auto& [product, gradient] : {std::pair("matmul", "inner_product"), std::pair("inner_product", "products")}) {
    taken[forward_key] = product;
    taken[gradient_key] = gradient;
    const DecisionScope replay({.measure = true, .known = taken});
    EXPECT_LE(relative_error(forward(x, weight, bias, true), exact), 1e-5) << product;
    const auto products = [] { return cpu::matmul_runs("matmul") + cpu::matmul_runs("sgemm"); };
    const std::size_t before = products();
    const std::array grads = gradients(DType::f32);
    EXPECT_EQ(products() > before, gradient == std::string("products"));
    for (std::size_t i = 0; i < 2; ++i) EXPECT_LE(relative_error(grads[i], exact_gradients[i]), 1e-5) << gradient << ' ' << i;
  }
}

// A forward pass with a bias but no ReLU has a third way.
TEST(Linear, ForwardsInEachWayOnRecord) {
  for (const auto& [rows, out] : {std::pair(257, 131), std::pair(131, 257)}) {
    const Tensor x = random({rows, 129}, 0), weight = random({out, 129}, 1), bias = random({out}, 2);
    const Tensor exact = forward(in_f64(x), in_f64(weight), in_f64(bias), false);
    DecisionMap taken;
    {
      const DecisionScope scope({.measure = true});
      forward(x, weight, bias, false);
      taken = scope.taken();
    }
    const std::string key = str("linear.forward bias rows", rows, " in129 out", out, " threads", omp_get_max_threads());
    ASSERT_EQ(taken.count(key), 1u);
    for (const char* way : {"matmul", "inner_product", "panels"}) {
      taken[key] = way;
      const DecisionScope replay({.measure = true, .known = taken});
      const std::size_t before = cpu::panels::runs();
      EXPECT_LE(relative_error(forward(x, weight, bias, false), exact), 1e-5) << way;
      EXPECT_EQ(cpu::panels::runs() > before, way == std::string("panels"));
      EXPECT_EQ(replay.taken(), taken);
    }
  }
}

// The record holds what the products inside a way choose, so that only the way itself is timed.
TEST(Linear, WaysOfLargeLayersAreTimedFromMemory) {
  const Tensor x = random({1021, 61}, 0), weight = random({1031, 61}, 1), bias = random({1031}, 2),
               grad_y = random({1021, 1031}, 3);
  const auto train = [&] {
    forward(x, weight, bias, false);
    cpu::linear_backward_weight(x, grad_y, Tensor::empty(weight.shape()), Tensor::empty(bias.shape()));
  };
  DecisionMap taken;
  {
    const DecisionScope scope({.measure = true});
    train();
    taken = scope.taken();
  }
  for (const std::string_view op : {"linear.forward ", "linear.backward_weight "}) {
    DecisionMap known = taken;
    EXPECT_EQ(std::erase_if(known, [&](const auto& each) { return each.first.starts_with(op); }), 1u);
    const DecisionScope scope({.measure = true, .known = known});
    const std::size_t before = cpu::cache_flushes();
    train();
    EXPECT_GT(cpu::cache_flushes(), before) << op;
  }
}

// Panels cannot apply a ReLU.
TEST(Linear, ARectifierIsNotLostWherePanelsAreForced) {
  const DecisionScope scope({.forced = "panels"});
  const Tensor x = random({257, 129}, 0), weight = random({131, 129}, 1), bias = random({131}, 2);
  for (const Tensor& added : {bias, Tensor()}) {
    const Tensor exact = forward(in_f64(x), in_f64(weight), in_f64(added), true);
    EXPECT_LE(relative_error(forward(x, weight, added, true), exact), 1e-5);
  }
}

TEST(Linear, ARowKeepsNaN) {
  const Tensor x = Tensor::full({1, 19}, std::numeric_limits<double>::quiet_NaN());
  const Tensor y = Tensor::empty({1, 6});
  cpu::row_product(x, random({6, 19}, 1), {}, y, true, 1);
  for (const float value : y.to_vector<float>()) EXPECT_TRUE(std::isnan(value));
  const Tensor rounded = Tensor::empty({1, 6}, DType::bf16);
  cpu::row_product(x.to(DType::bf16), random({6, 19}, 1).to(DType::bf16), {}, rounded, true, 1);
  for (const float value : rounded.to(DType::f32).to_vector<float>()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace tessera

// Forces every algorithm that a clock may choose for a convolution on a GPU in turn: it ran, and agrees with the
// CPU's loops in double.
#include <cudnn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "core/autograd/backward.h"
#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/ops/conv2d_plan_cuda.h"
#include "core/ops/linear.h"
#include "core/ops/relu.h"
#include "tests/core/ops/conv2d_cases.h"
#include "tests/support/gpu.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

struct Operands {
  Tensor x, weight, bias, grad_y;
  Conv2dOptions options;
};

// y and the gradients of x, weight and bias.
std::vector<Tensor> run(const Operands& in) {
  const Var x(in.x, true);
  const Var weight(in.weight, true);
  const Var bias = in.bias.defined() ? Var(in.bias, true) : Var();
  const Var y = conv2d(x, weight, bias, in.options);
  backward(y, in.grad_y);
  std::vector<Tensor> results{y.value(), x.grad(), weight.grad()};
  if (bias.defined()) results.push_back(bias.grad());
  return results;
}

// Values that are exact in `rounded`: images in that dtype, parameters in its parameter dtype; all in f64 if `exact`.
Operands operands(const ConvCase& c, DType rounded, bool exact, Device device) {
  const auto make = [&](const Shape& shape, std::uint64_t index, bool parameter) {
    const Tensor values = random_values(shape, index).to(rounded);
    const DType dtype = exact ? DType::f64 : parameter ? parameter_dtype(rounded) : rounded;
    return off_alignment(values.to(dtype).to(device));
  };
  return {make(c.x, 0, false), make(c.weight, 1, true), c.bias ? make({c.weight[0]}, 2, true) : Tensor(),
          make(conv2d_output_shape(c.x, c.weight, c.options), 3, false), c.options};
}

// The names of all algorithms that a clock chooses among, for a convolution with or without a fused ReLU.
std::set<std::string> names_offered(const ConvCase& c, DType dtype, Device gpu, const cuda::WantedEngines& engines,
                                    bool relu = false) {
  std::set<std::string> names{"gemm", "own", "naive"};
  const Shape y = conv2d_output_shape(c.x, c.weight, c.options);
  const Conv2dGeometry g{c.x[0],      c.x[1],      c.x[2], c.x[3], c.weight[0],
                         c.weight[1], c.weight[2], y[1],   y[2],   c.options};
  for (const Conv2dPass pass : {Conv2dPass::forward, Conv2dPass::backward_input, Conv2dPass::backward_weight}) {
    const cuda::ConvEpilogue epilogue{.bias = c.bias, .relu = relu};
    for (const auto& algorithm : cuda::dnn_convolutions(pass, g, dtype, epilogue, tf32_products(), gpu, engines)) {
      names.insert(algorithm->name());
    }
  }
  return names;
}

constexpr double kF32Tolerance = 3e-5;  // Winograd's transforms lose about a digit (Lavin & Gray 2016, section 5.3)
constexpr double kTf32Tolerance = 5e-3;  // 2^-11 of each operand, plus the same digit

double tolerance_of(DType dtype) {
  if (dtype == DType::f32) return kF32Tolerance;
  return dtype == DType::bf16 ? 0x1p-7 : 0x1p-9;  // results and transformed filters are rounded
}

class CudaConv2d : public GpuTestWithParam<DType> {};

TEST_P(CudaConv2d, EveryAlgorithmAgreesWithTheLoopsInDouble) {
  std::set<std::string> ran;
  for (const ConvCase& c : conv_cases("nhwc")) {
    const std::vector<Tensor> want = run(operands(c, GetParam(), true, Device::cpu()));
    const Operands in = operands(c, GetParam(), false, gpu());
    for (const std::string& name : names_offered(c, GetParam(), gpu(), {.all = true})) {
      SCOPED_TRACE(str(describe(c), ", ", name));
      const DecisionScope scope({.forced = name});
      const std::size_t before = cuda::conv2d_runs(name);
      const std::vector<Tensor> got = run(in);
      if (cuda::conv2d_runs(name) > before) ran.insert(name);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_LE(relative_error(got[i], want[i]), tolerance_of(GetParam())) << "result " << i;
      }
    }
  }
  EXPECT_EQ(ran.count("gemm"), 1u);
  EXPECT_EQ(ran.count("own"), GetParam() == DType::f32 ? 1u : 0u);
  EXPECT_GE(ran.size(), 4u);
}

TEST_P(CudaConv2d, TheClocksChoiceAgreesToo) {
  std::map<std::string, int> choices;  // by pass
  for (const ConvCase& c : conv_cases("nhwc")) {
    SCOPED_TRACE(describe(c));
    const std::vector<Tensor> want = run(operands(c, GetParam(), true, Device::cpu()));
    DecisionMap measured;
    const DecisionScope scope(
        {.measure = true, .on_measured = [&](const std::string& key, const std::string& choice) { measured[key] = choice; }});
    const std::vector<Tensor> got = run(operands(c, GetParam(), false, gpu()));
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_LE(relative_error(got[i], want[i]), tolerance_of(GetParam()));
    for (const auto& [key, choice] : measured) ++choices[key.substr(0, key.find(' '))];
  }
  // There is a choice only if several candidates are offered: algorithms of cuDNN, products, our own kernels.
  for (const char* pass : {"forward", "backward_input", "backward_weight"})
    EXPECT_GT(choices[str("cuda.conv2d.", pass)], 0) << pass;
}

// An engine's number and knobs mean something else in another version of cuDNN.
TEST(CudaConv2dNames, AnEngineIsOneOfThisVersionOfTheLibrary) {
  const std::string here = str("cudnn ", cudnnGetVersion(), " engine 62 k2=7");
  EXPECT_EQ(cuda::DnnConvolution::engine_in(here), "engine 62 k2=7");
  EXPECT_EQ(cuda::DnnConvolution::engine_in("cudnn 1 engine 62 k2=7"), "");
  EXPECT_EQ(cuda::DnnConvolution::engine_in("cudnn winograd fma"), "");
  EXPECT_EQ(cuda::DnnConvolution::engine_in(""), "");
}

TEST_P(CudaConv2d, TailsOfInferenceAreFused) {
  std::size_t fused = 0;
  for (const ConvCase& c : conv_cases("nhwc")) {
    SCOPED_TRACE(describe(c));
    const NoGrad no_grad;
    const Operands exact = operands(c, GetParam(), true, Device::cpu());
    const Operands in = operands(c, GetParam(), false, gpu());
    const auto tail = [&](const Operands& o, const Tensor& residual) {
      const Var bias = o.bias.defined() ? Var(o.bias) : Var();
      const Var other = residual.defined() ? Var(residual) : Var();
      return conv2d_relu(Var(o.x), Var(o.weight), bias, other, o.options).value();
    };
    const Tensor rectified = tail(exact, {});
    const Tensor added = tail(exact, exact.grad_y);
    for (const std::string& name : names_offered(c, GetParam(), gpu(), {}, true)) {
      SCOPED_TRACE(name);
      const DecisionScope scope({.forced = name});
      const std::size_t before = cuda::conv2d_runs(name);
      EXPECT_LE(relative_error(tail(in, {}), rectified), tolerance_of(GetParam()));
      EXPECT_LE(relative_error(tail(in, in.grad_y), added), tolerance_of(GetParam()));
      if (name.ends_with(" fused")) fused += cuda::conv2d_runs(name) - before;
    }
  }
  EXPECT_GT(fused, 0u);
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaConv2d, ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& test) { return str(test.param); });

class CudaTf32 : public GpuTest {};

// Where tf32 is allowed, products keep 10 bits of each operand. At least one algorithm of each pass uses it.
TEST_F(CudaTf32, IsTakenWhereItIsAllowed) {
  std::array<double, 4> farthest{};
  for (const ConvCase& c : conv_cases("nhwc")) {
    const std::vector<Tensor> want = run(operands(c, DType::f32, true, Device::cpu()));
    const Operands in = operands(c, DType::f32, false, gpu());
    const Tf32Products allowed(true);
    for (const std::string& name : names_offered(c, DType::f32, gpu(), {.all = true})) {
      SCOPED_TRACE(str(describe(c), ", ", name));
      const DecisionScope scope({.forced = name});
      const std::vector<Tensor> got = run(in);
      for (std::size_t i = 0; i < want.size(); ++i) {
        const double error = relative_error(got[i], want[i]);
        EXPECT_LE(error, kTf32Tolerance) << "result " << i;
        farthest[i] = std::max(farthest[i], error);
      }
    }
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GT(farthest[i], kF32Tolerance) << "result " << i;
}

}  // namespace
}  // namespace tessera::testing

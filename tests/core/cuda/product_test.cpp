// Matrix products on a GPU by the algorithms that a clock chose, replayed by name: each ran, and agrees with the CPU in double.
#include <gtest/gtest.h>

#include <set>

#include "core/autograd/backward.h"
#include "core/cuda/libraries/blas.h"
#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/ops/conv2d.h"
#include "core/ops/linear.h"
#include "core/rng.h"
#include "tests/support/gpu.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

struct Operands {
  Tensor x, weight, bias, grad_y;
};

// Values that are exact in `rounded`: activations in that dtype, parameters in its parameter dtype; or all in f64.
Operands operands(const Shape& sizes, DType rounded, bool exact, Device device) {  // rows, in, out
  const auto make = [&](const Shape& shape, std::uint64_t index, bool parameter) {
    const Tensor values = Tensor::empty(shape);
    fill_uniform(values, RngStream(7, "product_test", "values"), -1, 1, index);
    const DType dtype = exact ? DType::f64 : parameter ? parameter_dtype(rounded) : rounded;
    return values.to(rounded).to(dtype).to(device);
  };
  return {make({sizes[0], sizes[1]}, 0, false), make({sizes[2], sizes[1]}, 1, true), make({sizes[2]}, 2, true),
          make({sizes[0], sizes[2]}, 3, false)};
}

// y and the gradients of x, weight and bias.
std::vector<Tensor> run(const Operands& in) {
  const Var x(in.x, true);
  const Var weight(in.weight, true);
  const Var bias(in.bias, true);
  const Var y = linear(x, weight, bias);
  backward(y, in.grad_y);
  return {y.value(), x.grad(), weight.grad(), bias.grad()};
}

double tolerance_of(DType dtype) {
  if (dtype == DType::f32) return 1e-5;
  return dtype == DType::bf16 ? 0x1p-7 : 0x1p-9;  // results and the fused bias are rounded
}

class CudaProduct : public GpuTestWithParam<DType> {};

TEST_P(CudaProduct, TheClocksChoicesRunByNameAndAgree) {
  for (const Shape& sizes : {Shape{257, 129, 65}, Shape{512, 256, 384}, Shape{64, 1000, 512}}) {
    SCOPED_TRACE(str(sizes));
    const std::vector<Tensor> want = run(operands(sizes, GetParam(), true, Device::cpu()));
    const Operands in = operands(sizes, GetParam(), false, gpu());
    std::set<std::string> chosen;
    {
      const DecisionScope scope(
          {.measure = true, .on_measured = [&](const std::string&, const std::string& choice) { chosen.insert(choice); }});
      run(in);
    }
    EXPECT_FALSE(chosen.empty());
    for (const std::string& name : chosen) {
      SCOPED_TRACE(name);
      const DecisionScope scope({.forced = name});
      const std::size_t before = cuda::product_runs(name);
      const std::vector<Tensor> got = run(in);
      EXPECT_GT(cuda::product_runs(name), before);
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_LE(relative_error(got[i], want[i]), tolerance_of(GetParam())) << "result " << i;
      }
    }
  }
}

class CudaHalfProduct : public CudaProduct {};

// Changing the weight after the forward pass shows which weight the gradient of x is computed from.
TEST_P(CudaHalfProduct, AWeightIsRoundedOnceForBothDirections) {
  const Operands in = operands({5, 7, 3}, GetParam(), false, gpu());
  const Tensor images = in.x.reshape({5, 1, 1, 7}), filters = in.weight.reshape({3, 1, 1, 7});
  const auto grad_x = [&](bool changed, bool convolution) {
    const Tensor weight = convolution ? filters.clone() : in.weight.clone();
    const Var x(convolution ? images : in.x, true);
    const Var y = convolution ? conv2d(x, Var(weight, true)) : linear(x, Var(weight, true));
    if (changed) weight.fill(0);
    backward(y, in.grad_y.reshape(y.shape()));
    return x.grad().to(DType::f32).to_vector<float>();
  };
  for (const bool convolution : {false, true}) {
    const std::vector<float> want = grad_x(false, convolution);
    EXPECT_NE(want, std::vector<float>(want.size(), 0.0f));
    EXPECT_EQ(grad_x(true, convolution), want) << convolution;
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaProduct, ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& test) { return str(test.param); });
INSTANTIATE_TEST_SUITE_P(Cuda, CudaHalfProduct, ::testing::Values(DType::bf16, DType::f16),
                         [](const auto& test) { return str(test.param); });

}  // namespace
}  // namespace tessera::testing

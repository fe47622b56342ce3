// The fused Tucker-2 convolution on a GPU, forced: with the planner's choice and with each of its kernels it runs, and agrees
// with three convolutions of the CPU in double.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/autograd/backward.h"
#include "core/cuda/tucker_conv/plan.h"
#include "core/device/decisions.h"
#include "core/device/device_work.h"
#include "core/device/precision.h"
#include "core/ops/tucker_conv.h"
#include "tests/core/ops/conv2d_cases.h"
#include "tests/support/gpu.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

struct Case {
  Shape x, in_factor, core, out_factor;  // a factor of rank 0 is absent
  bool bias;
  Conv2dOptions options;
  bool shifted = false;  // operands are not aligned to four floats
};

// Just large enough that a choice is asked for: full and odd channels, strides, missing factors, a kernel of one pixel.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {{1, 12, 14, 64}, {32, 1, 1, 64}, {32, 3, 3, 32}, {64, 1, 1, 32}, true, {.padding = {1, 1}}},
      {{2, 9, 10, 64}, {32, 1, 1, 64}, {32, 3, 3, 32}, {64, 1, 1, 32}, true, {.padding = {1, 1}}, true},
      {{3, 13, 11, 37}, {19, 1, 1, 37}, {21, 3, 3, 19}, {45, 1, 1, 21}, true, {.padding = {1, 1}}},
      {{2, 13, 12, 64}, {40, 1, 1, 64}, {48, 3, 3, 40}, {72, 1, 1, 48}, false, {.stride = {2, 2}, .padding = {1, 1}}},
      {{2, 9, 9, 40}, {}, {32, 3, 3, 40}, {96, 1, 1, 32}, true, {.padding = {1, 1}}},
      {{2, 13, 11, 96}, {32, 1, 1, 96}, {40, 3, 3, 32}, {}, true, {.stride = {2, 1}, .padding = {0, 1}}},
      {{4, 10, 9, 96}, {48, 1, 1, 96}, {48, 1, 1, 48}, {96, 1, 1, 48}, true, {.stride = {2, 2}}},
      {{1, 7, 8, 330}, {36, 1, 1, 330}, {33, 5, 5, 36}, {40, 1, 1, 33}, true, {.padding = {2, 2}}},
  };
  return all;
}

// x, weights and grad_y with values that are exact in `rounded`; in f64 if `exact`.
struct Operands {
  Tensor x, in_factor, core, out_factor, bias, grad_y;
  Conv2dOptions options;
};

Operands operands(const Case& c, DType rounded, bool exact, Device device) {
  const auto make = [&](const Shape& shape, std::uint64_t index, bool parameter) {
    const DType dtype = exact ? DType::f64 : parameter ? parameter_dtype(rounded) : rounded;
    const Tensor values = random_values(shape, index).to(rounded).to(dtype).to(device);
    return c.shifted ? off_alignment(values) : values;
  };
  const auto factor = [&](const Shape& shape, std::uint64_t index) {
    return shape.rank() == 4 ? make(shape, index, true) : Tensor();
  };
  const Shape narrow = c.in_factor.rank() == 4 ? conv2d_output_shape(c.x, c.in_factor) : c.x;
  const Shape core = conv2d_output_shape(narrow, c.core, c.options);
  const Shape y = c.out_factor.rank() == 4 ? conv2d_output_shape(core, c.out_factor) : core;
  return {make(c.x, 0, false), factor(c.in_factor, 1), make(c.core, 2, true), factor(c.out_factor, 3),
          c.bias ? make({y[3]}, 4, true) : Tensor(), make(y, 5, false), c.options};
}

Var var_of(const Tensor& tensor, bool needs_gradient) { return tensor.defined() ? Var(tensor, needs_gradient) : Var(); }

// y and the gradients of all operands, or only those of the weights if the image needs none.
std::vector<Tensor> run(const Operands& o, bool image = true) {
  const Var x(o.x, image), in_factor = var_of(o.in_factor, true), core(o.core, true), out_factor = var_of(o.out_factor, true);
  const Var bias = var_of(o.bias, true);
  const Var y = tucker2_conv2d(x, in_factor, core, out_factor, bias, o.options);
  backward(y, o.grad_y);
  std::vector<Tensor> results{y.value()};
  for (const Var* v : {&x, &in_factor, &core, &out_factor, &bias}) {
    if (v->defined() && v->requires_grad()) results.push_back(v->grad());
  }
  return results;
}

std::string reason(const Operands& o, bool training) {
  return tucker_conv_reason(Var(o.x), var_of(o.in_factor, false), Var(o.core), var_of(o.out_factor, false), o.options, training);
}

void expect_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_LE(relative_error(got[i], want[i]), tolerance) << "result " << i;
}

// Both narrow images and the result are rounded once each.
double tolerance_of(DType dtype) { return dtype == DType::f32 ? 1e-5 : dtype == DType::bf16 ? 0x1p-6 : 0x1p-9; }

class CudaTuckerConv : public GpuTestWithParam<DType> {};

TEST_P(CudaTuckerConv, AgreesWithThreeConvolutionsInDouble) {
  const DecisionScope scope({.forced = "fused"});
  for (const Case& c : cases()) {
    SCOPED_TRACE(str("x", c.x, " core", c.core));
    const Operands in = operands(c, GetParam(), false, gpu());
    ASSERT_EQ(reason(in, true), "");
    for (const bool image : {true, false}) {
      expect_close(run(in, image), run(operands(c, GetParam(), true, Device::cpu()), image), tolerance_of(GetParam()));
    }
  }
}

TEST_P(CudaTuckerConv, TailOfInferenceIsFused) {
  const DecisionScope scope({.forced = "fused"});
  const NoGrad no_grad;
  for (const Case& c : cases()) {
    SCOPED_TRACE(str("x", c.x, " core", c.core));
    const auto tail = [](const Operands& o) {
      return tucker2_conv2d_relu(Var(o.x), var_of(o.in_factor, false), Var(o.core), var_of(o.out_factor, false),
                                 var_of(o.bias, false), Var(o.grad_y), o.options).value();
    };
    const Operands in = operands(c, GetParam(), false, gpu());
    ASSERT_EQ(reason(in, false), "");
    EXPECT_LE(relative_error(tail(in), tail(operands(c, GetParam(), true, Device::cpu()))), tolerance_of(GetParam()));
  }
}

TEST_P(CudaTuckerConv, RepeatsItsBitsAlsoFromAGraph) {
  const DecisionScope scope({.forced = "fused"});
  const Operands in = operands(cases()[1], GetParam(), false, gpu());
  const std::vector<Tensor> once = run(in), again = run(in);
  std::vector<Tensor> recorded;
  const auto graph = record_graph(gpu(), [&] { recorded = run(in); });
  graph->replay();
  synchronize(gpu());
  ASSERT_EQ(recorded.size(), once.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(relative_error(again[i], once[i]), 0) << "result " << i;
    EXPECT_EQ(relative_error(recorded[i], once[i]), 0) << "result " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaTuckerConv, ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& test) { return str(test.param); });

class CudaTuckerConvTf32 : public GpuTest {};

TEST_F(CudaTuckerConvTf32, RoundsOperandsWhereItIsAllowed) {
  const DecisionScope scope({.forced = "fused"});
  const Tf32Products allowed(true);
  for (const Case& c : cases()) {
    SCOPED_TRACE(str("x", c.x, " core", c.core));
    const std::vector<Tensor> got = run(operands(c, DType::f32, false, gpu()));
    const std::vector<Tensor> want = run(operands(c, DType::f32, true, Device::cpu()));
    expect_close(got, want, 0x1p-9);
    EXPECT_GT(relative_error(got[0], want[0]), 2e-5);  // f32 is within 1e-5
  }
}

// Tiny, for simulated GPUs: several tiles and parities; channels with and without 16-byte reads, of several slices and of several
// groups of sums.
const std::vector<Case>& tiny_cases() {
  static const std::vector<Case> all{
      {{1, 4, 5, 24}, {16, 1, 1, 24}, {8, 3, 3, 16}, {24, 1, 1, 8}, true, {.padding = {1, 1}}},
      {{2, 5, 4, 9}, {5, 1, 1, 9}, {7, 2, 3, 5}, {11, 1, 1, 7}, true, {.stride = {2, 1}, .padding = {1, 0}}, true},
      {{1, 4, 7, 20}, {}, {9, 3, 3, 20}, {36, 1, 1, 9}, false, {.stride = {2, 2}, .padding = {1, 1}}},
      {{1, 3, 4, 40}, {36, 1, 1, 40}, {10, 5, 2, 36}, {}, true, {.padding = {2, 1}}, true},
  };
  return all;
}

DType dtype_of(cuda::TuckerMath math) {
  if (math == cuda::TuckerMath::bf16) return DType::bf16;
  return math == cuda::TuckerMath::f16 ? DType::f16 : DType::f32;
}

cuda::TuckerConvShape shape_of(const Case& c, cuda::TuckerMath math) {
  const bool out = c.out_factor.rank() == 4;
  return {.images = c.x[0], .h = c.x[1], .w = c.x[2], .in = c.x[3], .rank_in = c.core[3], .rank_out = c.core[0],
          .out = out ? c.out_factor[0] : c.core[0], .kernel = {c.core[1], c.core[2]}, .stride = c.options.stride,
          .padding = c.options.padding, .in_factor = c.in_factor.rank() == 4, .out_factor = out, .math = math};
}

// A tensor that holds NaN until it is written.
Tensor unwritten(const Shape& shape, DType dtype) {
  return off_alignment(Tensor::full(shape, std::numeric_limits<double>::quiet_NaN(), dtype, Device::cuda()));
}

// Like run(), with these kernels.
std::vector<Tensor> run_by(const FusedTuckerConv& kernels, const Operands& o) {
  const DType dtype = o.x.dtype();
  const TuckerConvTensors operands{o.x, o.in_factor, o.core, o.out_factor, o.bias};
  const Shape narrow = o.in_factor.defined() ? conv2d_output_shape(o.x.shape(), o.in_factor.shape()) : o.x.shape();
  const Tensor narrow_in = o.in_factor.defined() ? unwritten(narrow, dtype) : Tensor();
  const Tensor narrow_out =
      o.out_factor.defined() ? unwritten(conv2d_output_shape(narrow, o.core.shape(), o.options), dtype) : Tensor();
  const Tensor y = unwritten(o.grad_y.shape(), dtype);
  kernels.forward(operands, {}, false, y, narrow_in, narrow_out);
  std::vector<Tensor> results{y};
  const auto wanted = [&](const Tensor& operand) {
    return operand.defined() ? results.emplace_back(unwritten(operand.shape(), operand.dtype())) : Tensor();
  };
  TuckerConvTensors grads;
  for (Tensor TuckerConvTensors::*one : {&TuckerConvTensors::x, &TuckerConvTensors::in_factor, &TuckerConvTensors::core,
                                         &TuckerConvTensors::out_factor, &TuckerConvTensors::bias}) {
    grads.*one = wanted(operands.*one);
  }
  kernels.backward(operands, narrow_in, narrow_out, o.grad_y, grads);
  return results;
}

// Candidates of one block shape, from the smallest tile to the largest.
std::vector<cuda::ChainCandidate> tiles_of(const cuda::BlockShape& block, const cuda::TuckerConvShape& conv, bool backward) {
  std::vector<cuda::ChainCandidate> tiles = cuda::chain_candidates(conv, backward, kSmallestGpu);
  std::erase_if(tiles, [&](const auto& tile) { return tile.block.rows != block.rows || tile.block.columns != block.columns; });
  return tiles;
}

class CudaTuckerKernels : public GpuTestWithParam<cuda::TuckerMath> {};

TEST_P(CudaTuckerKernels, EveryBlockShapeAgreesWithThreeConvolutionsInDouble) {
  const DType dtype = dtype_of(GetParam());
  const double tolerance = GetParam() == cuda::TuckerMath::tf32 ? 0x1p-9 : tolerance_of(dtype);
  for (const Case& c : tiny_cases()) {
    const cuda::TuckerConvShape conv = shape_of(c, GetParam());
    const Operands in = operands(c, dtype, false, gpu());
    const std::vector<Tensor> want = run(operands(c, dtype, true, Device::cpu()));
    for (const cuda::BlockShape& block : cuda::chain_blocks(GetParam())) {
      const auto forward = tiles_of(block, conv, false), backward = tiles_of(block, conv, true);
      ASSERT_FALSE(forward.empty() || backward.empty());
      for (const cuda::TuckerPlan& plan : {cuda::TuckerPlan{forward.front(), backward.front(), 3, 0},
                                           cuda::TuckerPlan{forward.back(), backward.back(), 1, 0}}) {
        SCOPED_TRACE(str("x", c.x, " core", c.core, " block ", block.rows, 'x', block.columns, " walkers ", plan.walkers));
        expect_close(run_by(*cuda::fused_tucker_conv(conv, plan, true, gpu()), in), want, tolerance);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaTuckerKernels,
                         ::testing::Values(cuda::TuckerMath::f32, cuda::TuckerMath::tf32, cuda::TuckerMath::bf16,
                                           cuda::TuckerMath::f16),
                         [](const auto& test) {
                           return test.param == cuda::TuckerMath::tf32 ? std::string("tf32") : str(dtype_of(test.param));
                         });

}  // namespace
}  // namespace tessera::testing

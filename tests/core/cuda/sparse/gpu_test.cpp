// Compares the sparse kernels on a GPU with plain loops in double over the composed weight, for all kinds of masks, windows and
// dtypes. Results are written to memory that holds NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/cpu/reference/conv2d.h"
#include "core/cuda/sparse/product.h"
#include "core/device/precision.h"
#include "core/ops/conv2d.h"
#include "core/rng.h"
#include "tests/support/gpu.h"
#include "tests/support/guarded.h"
#include "tests/support/op_checks.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

using cpu::sparse::Window;
namespace sparse = cuda::sparse;

struct Case {
  const char* name;
  Shape x;  // [n, h, w, in]
  std::int64_t out;
  Extent kernel;
  double density;
  std::int64_t sharing = 1;  // rows that keep the same columns
  Conv2dOptions options = {};
};

// Positions that fill no strip, and more than one split of them; rows that fill no tile, and several tiles; single channels;
// windows of every kind.
const std::vector<Case> kCases{
    {"one", {1, 1, 1, 1}, 1, {1, 1}, 1},
    {"nothing", {3, 1, 1, 9}, 5, {1, 1}, 0},
    {"everything", {5, 1, 1, 70}, 18, {1, 1}, 1},
    {"scattered", {67, 1, 1, 41}, 37, {1, 1}, .2},
    {"splits", {2300, 1, 1, 7}, 3, {1, 1}, .5},
    {"tiles", {65, 1, 1, 40}, 46, {1, 1}, .4, 23},
    {"blocks", {130, 1, 1, 35}, 64, {1, 1}, .5, 16},
    {"few shared", {9, 1, 1, 33}, 12, {1, 1}, .4, 4},
    {"window", {2, 7, 5, 9}, 19, {3, 3}, .15, 1, {.padding = {1, 1}}},
    {"window splits", {3, 27, 29, 2}, 2, {3, 2}, .5, 1, {.padding = {1, 0}}},
    {"window tiles", {1, 6, 9, 11}, 33, {3, 3}, .3, 11, {.padding = {1, 1}}},
    {"strides", {2, 8, 9, 5}, 16, {3, 2}, .3, 16, {.stride = {2, 3}, .padding = {1, 0}}},
    {"dilation", {1, 9, 11, 6}, 24, {3, 3}, .3, 8, {.stride = {2, 1}, .padding = {2, 1}, .dilation = {2, 3}}},
    {"pointwise strides", {2, 5, 7, 16}, 8, {1, 1}, .3, 1, {.stride = {2, 2}}},
};

Tensor drawn(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(5, "sparse_gpu_test", "values"), -1, 1, index);
  return x;
}

Tensor drawn_mask(const Case& c) {
  const Tensor mask = Tensor::zeros({c.out, c.kernel.h, c.kernel.w, c.x[3]}, DType::u8);
  const std::int64_t columns = mask.numel() / c.out;
  const Tensor draws = drawn({(c.out + c.sharing - 1) / c.sharing, columns}, 9);
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    const float draw = draws.data<float>()[i / columns / c.sharing * columns + i % columns];
    mask.data<std::uint8_t>()[i] = (draw + 1) / 2 < c.density ? 1 : 0;
  }
  return mask;
}

// Operands that are exact in `dtype`, and the composed weight.
struct Problem {
  Problem(const Case& c, DType dtype)
      : mask(drawn_mask(c)),
        index(sparse_index(mask)),
        y_shape(conv2d_output_shape(c.x, mask.shape(), c.options)),
        g{c.x[0], c.x[1], c.x[2], c.x[3], c.out, c.kernel.h, c.kernel.w, y_shape[1], y_shape[2], c.options},
        x(drawn(c.x, 1).to(dtype)),
        grad_y(drawn(y_shape, 2).to(dtype)),
        values(drawn({index.count()}, 3).to(dtype).to(parameter_dtype(dtype))),
        bias(drawn({c.out}, 4).to(parameter_dtype(dtype))),
        weight(Tensor::zeros(mask.shape(), DType::f64)) {
    const Tensor exact = values.to(DType::f64);
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < mask.numel(); ++i) {
      if (mask.data<std::uint8_t>()[i] != 0) weight.data<double>()[i] = exact.data<double>()[next++];
    }
  }

  std::int64_t taps() const { return g.kh * g.kw; }

  Tensor mask;
  SparseIndex index;
  Shape y_shape;
  Conv2dGeometry g;
  Tensor x, grad_y, values, bias, weight;
};

// The result is rounded once at most. Its sums run in f32, or in f64 for f64.
double tolerance_of(DType dtype, bool rounded) {
  if (dtype == DType::f64) return 1e-12;
  if (!rounded || dtype == DType::f32) return 2e-6;
  return dtype == DType::bf16 ? kBf16Rounding + 2e-6 : kF16Rounding + 2e-6;
}

constexpr sparse::Walk kWalks[] = {sparse::Walk::rows, sparse::Walk::pieces};

std::string title(const Case& c, sparse::Walk walk) { return str(c.name, walk == sparse::Walk::rows ? ", rows" : ", pieces"); }

class CudaSparse : public GpuTestWithParam<DType> {
 protected:
  // A result between margins that show writes outside of it, not aligned to any vector.
  Guarded unwritten(const Shape& shape, DType dtype) const {
    return Guarded(Tensor::full(shape, std::numeric_limits<double>::quiet_NaN(), dtype, gpu()));
  }
  Tensor moved(const Tensor& x) const { return Guarded(x.to(gpu())).tensor(); }
};

TEST_P(CudaSparse, ForwardWithBiasAndRectifier) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Problem p(c, GetParam());
    const Tensor want = Tensor::empty(p.y_shape, DType::f64);
    cpu::reference::conv2d_forward<double>(p.g, p.x.to(DType::f64).data<double>(), p.weight.data<double>(),
                                           p.bias.to(DType::f64).data<double>(), want.data<double>());
    const Tensor rectified = want.clone();
    for (std::int64_t i = 0; i < want.numel(); ++i) rectified.data<double>()[i] = std::max(want.data<double>()[i], 0.0);
    const sparse::Matrix matrix = sparse::row_matrix(p.index, p.taps(), gpu());
    for (const int i : {0, 1, 2, 3}) {
      const sparse::Walk walk = kWalks[i / 2];
      const bool relu = i % 2 == 1;
      const Guarded y = unwritten(p.y_shape, GetParam());
      sparse::multiply(matrix, walk, moved(p.values), {p.g, Conv2dPass::forward}, moved(p.x), moved(p.bias), relu, y.tensor());
      const Tensor& expected = relu ? rectified : want;
      EXPECT_LE(relative_error(y.tensor(), expected), tolerance_of(GetParam(), true)) << title(c, walk) << (relu ? ", relu" : "");
      EXPECT_TRUE(y.margins_intact());
    }
  }
}

TEST_P(CudaSparse, GradientOfTheInput) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Problem p(c, GetParam());
    const Tensor want = Tensor::empty(c.x, DType::f64);
    cpu::reference::conv2d_backward_input<double>(p.g, p.grad_y.to(DType::f64).data<double>(), p.weight.data<double>(),
                                                  want.data<double>());
    const sparse::Matrix matrix = sparse::column_matrix(p.index, p.taps(), gpu());
    for (const sparse::Walk walk : kWalks) {
      const Guarded grad_x = unwritten(c.x, GetParam());
      sparse::multiply(matrix, walk, moved(p.values), {p.g, Conv2dPass::backward_input}, moved(p.grad_y), {}, false,
                       grad_x.tensor());
      EXPECT_LE(relative_error(grad_x.tensor(), want), tolerance_of(GetParam(), true)) << title(c, walk);
      EXPECT_TRUE(grad_x.margins_intact());
    }
  }
}

TEST_P(CudaSparse, GradientOfTheValues) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Problem p(c, GetParam());
    const Tensor dense = Tensor::empty(p.mask.shape(), DType::f64);
    cpu::reference::conv2d_backward_weight<double>(p.g, p.x.to(DType::f64).data<double>(), p.grad_y.to(DType::f64).data<double>(),
                                                   dense.data<double>(), nullptr);
    std::vector<double> want;
    for (std::int64_t i = 0; i < dense.numel(); ++i) {
      if (p.mask.data<std::uint8_t>()[i] != 0) want.push_back(dense.data<double>()[i]);
    }
    const sparse::Matrix matrix = sparse::row_matrix(p.index, p.taps(), gpu());
    for (const sparse::Walk walk : kWalks) {
      const Guarded grad = unwritten({p.index.count()}, parameter_dtype(GetParam()));
      sparse::gradient(matrix, walk, {p.g, Conv2dPass::forward}, moved(p.x), moved(p.grad_y), grad.tensor());
      EXPECT_LE(relative_error(grad.tensor().to(DType::f64).to_vector<double>(), want), tolerance_of(GetParam(), false))
          << title(c, walk);
      EXPECT_TRUE(grad.margins_intact());
    }
  }
}

TEST_P(CudaSparse, TwoRunsGiveTheSameBytes) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Problem p(c, GetParam());
    const sparse::Matrix rows = sparse::row_matrix(p.index, p.taps(), gpu());
    const sparse::Matrix columns = sparse::column_matrix(p.index, p.taps(), gpu());
    const Tensor x = p.x.to(gpu()), grad_y = p.grad_y.to(gpu()), values = p.values.to(gpu()), bias = p.bias.to(gpu());
    std::vector<Tensor> results[2];
    for (std::vector<Tensor>& run : results) {
      for (const sparse::Walk walk : kWalks) {
        run.push_back(unwritten(p.y_shape, GetParam()).tensor());
        sparse::multiply(rows, walk, values, {p.g, Conv2dPass::forward}, x, bias, false, run.back());
        run.push_back(unwritten(c.x, GetParam()).tensor());
        sparse::multiply(columns, walk, values, {p.g, Conv2dPass::backward_input}, grad_y, {}, false, run.back());
        run.push_back(unwritten({p.index.count()}, parameter_dtype(GetParam())).tensor());
        sparse::gradient(rows, walk, {p.g, Conv2dPass::forward}, x, grad_y, run.back());
      }
    }
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_TRUE(same_bytes(results[0][i].contiguous(), results[1][i].contiguous())) << "result " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaSparse, ::testing::Values(DType::f32, DType::f64, DType::bf16, DType::f16),
                         [](const auto& test) { return str(test.param); });

}  // namespace
}  // namespace tessera::testing

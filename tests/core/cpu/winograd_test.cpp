// Compares the kernels of every instruction set with the loops in double, whichever set this processor would choose.
#include "core/cpu/winograd/winograd.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "core/support/error.h"
#include "tests/support/each_isa.h"
#include "tests/support/relative_error.h"

namespace tessera::cpu::winograd {
namespace {

using reference::Conv2dGeometry;

struct Case {
  std::int64_t n, h, w, in, out;
  Extent padding = {1, 1};
};

// Sides that fill no tile, channels that fill no vector, one image, partial blocks, padding of 0 to 2 pixels. In the last two
// cases each thread takes several blocks.
const std::vector<Case> kCases{{1, 1, 1, 1, 1},           {2, 4, 4, 16, 16},          {3, 8, 8, 64, 32},
                               {1, 7, 13, 5, 9},          {2, 32, 32, 16, 48},        {1, 14, 14, 40, 24},
                               {5, 9, 6, 33, 17, {0, 2}}, {2, 11, 3, 8, 100, {2, 0}}, {1, 3, 3, 24, 7, {0, 0}},
                               {8, 32, 32, 16, 48},       {3, 37, 41, 40, 24}};

Conv2dGeometry geometry(const Case& c) {
  return {c.n, c.h, c.w, c.in, c.out, 3, 3, c.h + 2 * c.padding.h - 2, c.w + 2 * c.padding.w - 2, {.padding = c.padding}};
}

Tensor random(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(3, "winograd_test", "values"), -1, 1, index);
  return x;
}

// Winograd's transforms lose about a digit against direct sums (Lavin & Gray 2016, section 5.3).
constexpr double kTolerance = 2e-5;

class WinogradKernels : public tessera::testing::EachIsa {
 protected:
  const Kernels* kernels = one_of(kAvx2Kernels, kAvx512Kernels);
};

TEST_P(WinogradKernels, ForwardWithBiasAndRectifier) {
  for (const Case& c : kCases) {
    const Conv2dGeometry g = geometry(c);
    const Tensor x = random({c.n, c.h, c.w, c.in}, 0);
    const Tensor weight = random({c.out, 3, 3, c.in}, 1);
    const Tensor bias = random({c.out}, 2);
    const Tensor y = Tensor::empty({c.n, g.oh, g.ow, c.out});
    const Tensor want = Tensor::empty(y.shape(), DType::f64);
    reference::conv2d_forward<double>(g, x.to(DType::f64).data<double>(), weight.to(DType::f64).data<double>(),
                                      bias.to(DType::f64).data<double>(), want.data<double>());
    for (const bool relu : {false, true}) {
      y.fill(NAN);
      forward(*kernels, g, x, filters(*kernels, weight), {bias.data<float>(), relu}, y);
      for (std::int64_t i = 0; relu && i < want.numel(); ++i) want.data<double>()[i] = std::max(want.data<double>()[i], 0.0);
      EXPECT_LE(relative_error(y, want), kTolerance) << "x " << x.shape() << " weight " << weight.shape();
    }
  }
}

// Images in bf16 give the same results, rounded. Weight gradients are not rounded.
TEST_P(WinogradKernels, InBf16OnlyImagesAreRounded) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(str(c.n, "x", c.h, "x", c.w, ", ", c.in, " -> ", c.out));
    const Conv2dGeometry g = geometry(c);
    const Tensor x = random({c.n, c.h, c.w, c.in}, 0).to(DType::bf16), weight = random({c.out, 3, 3, c.in}, 1);
    const Tensor bias = random({c.out}, 2), grad_y = random({c.n, g.oh, g.ow, c.out}, 3).to(DType::bf16);
    const auto results = [&](DType dtype) {
      const Tensor of_x = x.to(dtype), of_y = grad_y.to(dtype);
      const Tensor y = Tensor::full(grad_y.shape(), NAN, dtype), grad_x = Tensor::full(x.shape(), NAN, dtype);
      const Tensor grad_weight = Tensor::full(weight.shape(), NAN);
      forward(*kernels, g, of_x, filters(*kernels, weight), {bias.data<float>(), true}, y);
      backward_input(*kernels, g, of_y, turned_filters(*kernels, weight), grad_x);
      backward_weight(*kernels, g, of_x, of_y, grad_weight);
      return std::vector<Tensor>{y, grad_x, grad_weight};
    };
    const std::vector<Tensor> half = results(DType::bf16), whole = results(DType::f32);
    for (std::size_t i = 0; i < half.size(); ++i) {
      const Tensor rounded = i < 2 ? whole[i].to(DType::bf16) : whole[i];
      EXPECT_EQ(half[i].to(DType::f32).to_vector<float>(), rounded.to(DType::f32).to_vector<float>()) << "result " << i;
    }
  }
}

TEST_P(WinogradKernels, BackwardInput) {
  for (const Case& c : kCases) {
    const Conv2dGeometry g = geometry(c);
    const Tensor grad_y = random({c.n, g.oh, g.ow, c.out}, 0);
    const Tensor weight = random({c.out, 3, 3, c.in}, 1);
    const Tensor grad_x = Tensor::empty({c.n, c.h, c.w, c.in});
    const Tensor want = Tensor::empty(grad_x.shape(), DType::f64);
    reference::conv2d_backward_input<double>(g, grad_y.to(DType::f64).data<double>(), weight.to(DType::f64).data<double>(),
                                             want.data<double>());
    grad_x.fill(NAN);
    backward_input(*kernels, g, grad_y, turned_filters(*kernels, weight), grad_x);
    EXPECT_LE(relative_error(grad_x, want), kTolerance) << "x " << grad_x.shape() << " weight " << weight.shape();
  }
}

TEST_P(WinogradKernels, BackwardWeight) {
  for (const Case& c : kCases) {
    const Conv2dGeometry g = geometry(c);
    const Tensor x = random({c.n, c.h, c.w, c.in}, 0);
    const Tensor grad_y = random({c.n, g.oh, g.ow, c.out}, 1);
    const Tensor grad_weight = Tensor::empty({c.out, 3, 3, c.in});
    const Tensor want = Tensor::empty(grad_weight.shape(), DType::f64);
    reference::conv2d_backward_weight<double>(g, x.to(DType::f64).data<double>(), grad_y.to(DType::f64).data<double>(),
                                              want.data<double>(), nullptr);
    grad_weight.fill(NAN);
    backward_weight(*kernels, g, x, grad_y, grad_weight);
    EXPECT_LE(relative_error(grad_weight, want), kTolerance) << "x " << x.shape() << " weight " << grad_weight.shape();
  }
}

TEST_P(WinogradKernels, NaNReachesItsTileAndStaysBehindTheRectifier) {
  const Conv2dGeometry g = geometry({1, 16, 16, 16, 16});
  const Tensor x = random({1, 16, 16, 16}, 0);
  x.data<float>()[0] = NAN;
  const Tensor y = Tensor::empty({1, 16, 16, 16});
  forward(*kernels, g, x, filters(*kernels, random({16, 3, 3, 16}, 1)), {nullptr, true}, y);
  EXPECT_TRUE(std::isnan(y.data<float>()[0]));
  EXPECT_FALSE(std::isnan(y.data<float>()[y.numel() - 1]));
}

INSTANTIATE_TEST_SUITE_P(Cpu, WinogradKernels, ::testing::Values("avx2", "avx512"),
                         [](const auto& entry) { return std::string(entry.param); });

}  // namespace
}  // namespace tessera::cpu::winograd

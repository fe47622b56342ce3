// Compares the kernels of every instruction set with the loops in double, whichever set this processor would choose.
#include "core/cpu/depthwise/depthwise.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "tests/support/each_isa.h"
#include "tests/support/guarded.h"
#include "tests/support/relative_error.h"

namespace tessera::cpu::depthwise {
namespace {

using reference::Conv2dGeometry;
using testing::Guarded;

struct Case {
  std::int64_t n, h, w, channels;
  Extent kernel = {3, 3}, padding = {1, 1}, stride = {1, 1}, dilation = {1, 1};
};

const Extent kNone{0, 0}, kOne{1, 1}, kTwo{2, 2}, kThree{3, 3};

// Channels that fill vectors of 16, 8 or 4, or no vector; output rows in groups of 7, 8 and fewer; a single pixel; windows that
// see only padding; strides that leave pixels unread; work for one thread and for several.
const std::vector<Case> kCases{{1, 1, 1, 2},
                               {2, 7, 7, 16},
                               {1, 14, 21, 32},
                               {3, 8, 16, 24},
                               {2, 5, 13, 37},
                               {1, 9, 11, 6, kThree, kNone},
                               {2, 6, 5, 40, kThree, kTwo},
                               {1, 10, 3, 17, kThree, {0, 2}},
                               {2, 14, 14, 32, kThree, kOne, kTwo},
                               {3, 15, 17, 48, kThree, kOne, kTwo},
                               {1, 11, 8, 23, kThree, kNone, kTwo},
                               {2, 13, 12, 20, kThree, kTwo, kTwo},
                               {1, 9, 10, 18, kThree, kOne, {1, 2}},
                               {2, 16, 11, 21, kThree, kOne, {3, 2}},
                               {1, 12, 13, 33, kThree, kTwo, kOne, kTwo},
                               {2, 13, 9, 16, kThree, {0, 3}, {2, 3}, {3, 2}},
                               {1, 9, 10, 19, {5, 5}, kTwo},
                               {2, 8, 9, 35, {7, 2}, {3, 0}, kTwo},
                               {1, 6, 7, 32, {1, 1}, kNone},
                               {2, 7, 5, 11, {1, 1}, kOne, kThree},
                               {1, 5, 4, 8, {2, 4}, kTwo, kTwo},
                               {2, 37, 41, 72},
                               {1, 53, 47, 64, kThree, kOne, kTwo}};

Conv2dGeometry geometry(const Case& c) {
  const auto outputs = [](std::int64_t size, std::int64_t kernel, std::int64_t padding, std::int64_t stride,
                          std::int64_t dilation) { return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; };
  return {c.n,
          c.h,
          c.w,
          c.channels,
          c.channels,
          c.kernel.h,
          c.kernel.w,
          outputs(c.h, c.kernel.h, c.padding.h, c.stride.h, c.dilation.h),
          outputs(c.w, c.kernel.w, c.padding.w, c.stride.w, c.dilation.w),
          {.stride = c.stride, .padding = c.padding, .dilation = c.dilation, .groups = c.channels}};
}

std::string text_of(const Case& c) {
  return str("x ", c.n, 'x', c.h, 'x', c.w, 'x', c.channels, " kernel ", c.kernel, " padding ", c.padding, " stride ", c.stride,
             " dilation ", c.dilation);
}

Tensor random(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(5, "depthwise_test", "values"), -1, 1, index);
  return x;
}

Tensor wide(const Tensor& x) { return x.to(DType::f64); }

// The kernels must write all of `result` and nothing else.
class Output {
 public:
  explicit Output(const Shape& shape) : guarded_(Tensor::full(shape, std::numeric_limits<double>::quiet_NaN())) {}
  const Tensor& tensor() const { return guarded_.tensor(); }
  void expect(const Tensor& want) {
    // Sums of at most about 4000 rounded products.
    EXPECT_LE(relative_error(tensor(), want), 1e-5);
    tensor().fill(std::numeric_limits<double>::quiet_NaN());
    EXPECT_TRUE(guarded_.intact()) << "written outside";
  }

 private:
  Guarded guarded_;
};

class DepthwiseKernels : public tessera::testing::EachIsa {
 protected:
  const Kernels* kernels = one_of(kAvx2Kernels, kAvx512Kernels);
};

TEST_P(DepthwiseKernels, ForwardWithBiasAndRectifier) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(text_of(c));
    const Conv2dGeometry g = geometry(c);
    const Guarded x(random({c.n, c.h, c.w, c.channels}, 0));
    const Guarded weight(random({c.channels, c.kernel.h, c.kernel.w, 1}, 1));
    const Guarded bias(random({c.channels}, 2));
    Output y({c.n, g.oh, g.ow, c.channels});
    const Tensor want = Tensor::empty(y.tensor().shape(), DType::f64);
    const Tensor filters = depthwise::filters(weight.tensor());
    for (const bool with_bias : {false, true}) {
      reference::conv2d_forward<double>(g, wide(x.tensor()).data<double>(), wide(weight.tensor()).data<double>(),
                                        with_bias ? wide(bias.tensor()).data<double>() : nullptr, want.data<double>());
      forward(*kernels, g, x.tensor(), filters, {with_bias ? bias.tensor().data<float>() : nullptr, false}, y.tensor());
      y.expect(want);
    }
    for (std::int64_t i = 0; i < want.numel(); ++i) want.data<double>()[i] = std::max(want.data<double>()[i], 0.0);
    forward(*kernels, g, x.tensor(), filters, {bias.tensor().data<float>(), true}, y.tensor());
    y.expect(want);
    EXPECT_TRUE(x.intact() && bias.intact());
  }
}

TEST_P(DepthwiseKernels, BackwardInput) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(text_of(c));
    const Conv2dGeometry g = geometry(c);
    const Guarded grad_y(random({c.n, g.oh, g.ow, c.channels}, 0));
    const Tensor weight = random({c.channels, c.kernel.h, c.kernel.w, 1}, 1);
    Output grad_x({c.n, c.h, c.w, c.channels});
    const Tensor want = Tensor::empty(grad_x.tensor().shape(), DType::f64);
    reference::conv2d_backward_input<double>(g, wide(grad_y.tensor()).data<double>(), wide(weight).data<double>(),
                                             want.data<double>());
    backward_input(*kernels, g, grad_y.tensor(), input_grad_filters(g, weight), grad_x.tensor());
    grad_x.expect(want);
  }
}

TEST_P(DepthwiseKernels, BackwardWeight) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(text_of(c));
    const Conv2dGeometry g = geometry(c);
    const Guarded x(random({c.n, c.h, c.w, c.channels}, 0));
    const Guarded grad_y(random({c.n, g.oh, g.ow, c.channels}, 1));
    Output grad_weight({c.channels, c.kernel.h, c.kernel.w, 1});
    const Tensor want = Tensor::empty(grad_weight.tensor().shape(), DType::f64);
    reference::conv2d_backward_weight<double>(g, wide(x.tensor()).data<double>(), wide(grad_y.tensor()).data<double>(),
                                              want.data<double>(), nullptr);
    backward_weight(*kernels, g, x.tensor(), grad_y.tensor(), grad_weight.tensor());
    grad_weight.expect(want);
  }
}

TEST_P(DepthwiseKernels, ResultsHaveTheSameBytesWhateverTheThreads) {
  const Conv2dGeometry g = geometry({3, 21, 23, 72});
  const Tensor x = random({3, 21, 23, 72}, 0);
  const Tensor grad_y = random(x.shape(), 1);
  const Tensor weight = random({72, 3, 3, 1}, 2);
  std::vector<std::vector<float>> first;
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    const Tensor y = Tensor::empty(x.shape()), grad_x = Tensor::empty(x.shape()), grad_weight = Tensor::empty(weight.shape());
    forward(*kernels, g, x, filters(weight), {}, y);
    backward_input(*kernels, g, grad_y, input_grad_filters(g, weight), grad_x);
    backward_weight(*kernels, g, x, grad_y, grad_weight);
    std::vector<std::vector<float>> all;
    for (const Tensor& result : {y, grad_x, grad_weight}) all.push_back(result.to_vector<float>());
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << threads << " threads";
  }
  omp_set_num_threads(before);
}

// Whole cache lines of a result above 8 MiB with a line-aligned address bypass the caches. Pixels are prefetched.
TEST_P(DepthwiseKernels, LargeResultsAreTheSameAtEveryAddress) {
  for (const Extent& stride : {kOne, kTwo}) {
    const Case c{5, 97, 70, 64, kThree, kOne, stride};
    const Conv2dGeometry g = geometry(c);
    const Tensor x = random({c.n, c.h, c.w, c.channels}, 0);
    const Tensor grad_y = random({c.n, g.oh, g.ow, c.channels}, 1);
    const Tensor weight = random({c.channels, 3, 3, 1}, 2);
    Output y(grad_y.shape()), grad_x(x.shape());
    forward(*kernels, g, x, filters(weight), {}, y.tensor());
    backward_input(*kernels, g, grad_y, input_grad_filters(g, weight), grad_x.tensor());
    const Tensor aligned_y = Tensor::empty(grad_y.shape()), aligned_grad_x = Tensor::empty(x.shape());
    forward(*kernels, g, x, filters(weight), {}, aligned_y);
    backward_input(*kernels, g, grad_y, input_grad_filters(g, weight), aligned_grad_x);
    EXPECT_EQ(aligned_y.to_vector<float>(), y.tensor().to_vector<float>());
    EXPECT_EQ(aligned_grad_x.to_vector<float>(), grad_x.tensor().to_vector<float>());
    const Tensor want = Tensor::empty(y.tensor().shape(), DType::f64);
    reference::conv2d_forward<double>(g, wide(x).data<double>(), wide(weight).data<double>(), nullptr, want.data<double>());
    y.expect(want);
    const Tensor want_grad_x = Tensor::empty(x.shape(), DType::f64);
    reference::conv2d_backward_input<double>(g, wide(grad_y).data<double>(), wide(weight).data<double>(),
                                             want_grad_x.data<double>());
    grad_x.expect(want_grad_x);
  }
}

TEST_P(DepthwiseKernels, NaNReachesItsNeighboursAndNoOtherChannel) {
  const Conv2dGeometry g = geometry({1, 8, 8, 32});
  const Tensor x = random({1, 8, 8, 32}, 0);
  x.data<float>()[0] = NAN;
  const Tensor y = Tensor::empty(x.shape());
  forward(*kernels, g, x, filters(random({32, 3, 3, 1}, 1)), {nullptr, true}, y);
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const bool near = i % 32 == 0 && i / 32 % 8 < 2 && i / 256 < 2;
    EXPECT_EQ(std::isnan(y.data<float>()[i]), near) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, DepthwiseKernels, ::testing::Values("avx2", "avx512"),
                         [](const auto& entry) { return std::string(entry.param); });

TEST(Depthwise, SuitsOneFilterAChannel) {
  const auto suited = [](std::int64_t in, std::int64_t out, std::int64_t groups) {
    return suits({1, 8, 8, in, out, 3, 3, 6, 6, {.groups = groups}});
  };
  EXPECT_TRUE(suited(6, 6, 6));
  EXPECT_FALSE(suited(6, 12, 6));
  EXPECT_FALSE(suited(6, 6, 3));
  EXPECT_FALSE(suited(1, 1, 1));
}

}  // namespace
}  // namespace tessera::cpu::depthwise

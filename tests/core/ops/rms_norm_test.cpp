#include "core/ops/rms_norm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "core/autograd/backward.h"
#include "core/ops/layer_norm.h"
#include "core/rng.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

Var ones(const Shape& shape, bool requires_grad = false) { return Var(Tensor::full(shape, 1.0), requires_grad); }

TEST(RmsNorm, NamesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              rms_norm(ones({2, 3}), ones({4}), 1e-5);
            }),
            "rms_norm: gamma does not fit: x is [2, 3], gamma is [4]; gamma must be [x.dim(-1)]");
  EXPECT_EQ(message_of<ShapeError>([] { rms_norm(ones({}), ones({1}), 1e-5); }),
            "rms_norm: x is a scalar; needs at least 1 dimension");
  EXPECT_THROW(rms_norm(Var(Tensor::full({2, 3}, 1.0, DType::f64)), ones({3}), 1e-5), DTypeError);
}

// A row of zeros is divided by the square root of eps. Without eps the result would be NaN.
TEST(RmsNorm, EpsHoldsUpARowOfZeros) {
  const Var x(Tensor::zeros({1, 3}), true);
  backward(rms_norm(x, ones({3}), 1e-4), Tensor::from(std::vector<float>{1, 2, 3}, {1, 3}));
  const std::vector<float> grad = x.grad().to_vector<float>();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FLOAT_EQ(grad[i], 100 * static_cast<float>(i + 1));
}

TEST(RmsNorm, GivesOnlyTheGradientThatIsAskedFor) {
  const Var x = ones({2, 3}, true), gamma = ones({3}), fixed = ones({2, 3}), scale = ones({3}, true);
  backward(rms_norm(x, gamma, 1e-5), Tensor::full({2, 3}, 1.0));
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(gamma.grad().defined());
  backward(rms_norm(fixed, scale, 1e-5), Tensor::full({2, 3}, 1.0));
  EXPECT_FALSE(fixed.grad().defined());
  EXPECT_NEAR(scale.grad().to_vector<float>()[1], 2, 1e-4);
}

// The gradients of a norm's parameters are sums over rows: too few rows to fill a block, and many blocks. They are computed with
// those of x, or alone.
TEST(RmsNorm, AnyNumberOfThreadsGivesTheSameBytes) {
  const int before = omp_get_max_threads();
  for (const std::int64_t rows : {5, 333, 2100}) {
    const Tensor values = Tensor::empty({rows, 257}), grad = Tensor::empty({rows, 257});
    fill_normal(values, RngStream(1, "rms_norm_test", "x"), 0, 1);
    fill_normal(grad, RngStream(1, "rms_norm_test", "grad"), 0, 1);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      std::vector<std::vector<float>> seen;
      for (const int threads : {1, 2, 5}) {
        omp_set_num_threads(threads);
        const Var gamma = ones({257}, true), beta(Tensor::zeros({257}), true), scale = ones({257}, true);
        const Var x(values.to(dtype), true), again = ones({257}, true);
        backward(layer_norm(x, gamma, beta), grad.to(dtype));
        backward(rms_norm(x, scale, 1e-5), grad.to(dtype));
        backward(rms_norm(Var(values.to(dtype)), again, 1e-5), grad.to(dtype));
        std::vector<float>& bits = seen.emplace_back();
        for (const Var& of : {x, gamma, beta, scale, again}) {
          const std::vector<float> all = of.grad().to(DType::f32).to_vector<float>();
          bits.insert(bits.end(), all.begin(), all.end());
        }
      }
      for (const auto& bits : seen) EXPECT_EQ(bits, seen.front()) << rows;
    }
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace tessera

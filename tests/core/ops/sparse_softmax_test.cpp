#include "core/ops/sparse_softmax.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "core/autograd/backward.h"
#include "core/ops/softmax.h"
#include "core/rng.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows of 23, 0, 1, 14 and 3 of 23 elements, and so on.
SparseWeightPtr uneven_pattern(std::int64_t rows) {
  const std::int64_t columns = 23;
  const Tensor mask = Tensor::zeros({rows, columns}, DType::u8);
  for (std::int64_t r = 0; r < rows; ++r) {
    const bool empty = r % 5 == 1;
    for (std::int64_t c = 0; c < columns; ++c) {
      mask.data<std::uint8_t>()[r * columns + c] = !empty && (c * 7 + r) % columns < columns - 11 * (r % 5) % 24 ? 1 : 0;
    }
  }
  return std::make_shared<SparseWeight>(mask);
}

Tensor normal(const Shape& shape, const char* name, double deviation = 1.0) {
  const Tensor x = Tensor::empty(shape, DType::f32);
  fill_normal(x, RngStream(3, "sparse_softmax", name), 0.0, deviation);
  return x;
}

// Puts values [batch, count] at their places in a matrix [batch, rows, columns] that holds `other` elsewhere.
Tensor as_matrix(const Tensor& values, const SparseWeight& pattern, float other) {
  const std::int64_t batch = values.dim(0), count = pattern.count(), elements = pattern.shape().numel();
  const Tensor matrix = Tensor::full({batch, pattern.shape()[0], pattern.shape()[1]}, other);
  const std::int64_t* const positions = pattern.positions(Device::cpu()).data<std::int64_t>();
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < count; ++i) {
      matrix.data<float>()[b * elements + positions[i]] = values.data<float>()[b * count + i];
    }
  }
  return matrix;
}

struct Results {
  std::vector<float> y;
  std::vector<float> grad;
};

Results results_of(const Tensor& values, const SparseWeightPtr& pattern, const Tensor& grad_y, double scale) {
  const Var x(values, true);
  const Var y = sparse_softmax(x, pattern, scale);
  backward(y, grad_y);
  return {y.value().to_vector<float>(), x.grad().to_vector<float>()};
}

TEST(SparseSoftmax, IsTheDenseOneOfMaskedScores) {
  const SparseWeightPtr pattern = uneven_pattern(11);
  const Tensor values = normal({3, pattern->count()}, "x", 2.0), upstream = normal(values.shape(), "g");
  const Results sparse = results_of(values, pattern, upstream, 1.0);
  const Var scores(as_matrix(values, *pattern, -kInfinity), true);
  const Var y = softmax(scores);
  backward(y, as_matrix(upstream, *pattern, 0.0f));
  const std::int64_t* const positions = pattern->positions(Device::cpu()).data<std::int64_t>();
  for (std::size_t i = 0; i < sparse.y.size(); ++i) {
    const auto count = static_cast<std::size_t>(pattern->count());
    const auto at = static_cast<std::int64_t>(i / count) * pattern->shape().numel() + positions[i % count];
    EXPECT_NEAR(sparse.y[i], y.value().data<float>()[at], 1e-6f) << i;  // the sums run in another order
    EXPECT_NEAR(sparse.grad[i], scores.grad().data<float>()[at], 2e-6f) << i;
  }
}

TEST(SparseSoftmax, IsStableForLargeScores) {
  const auto pattern = std::make_shared<SparseWeight>(Tensor::full({2, 3}, 1, DType::u8));
  const Tensor values = Tensor::from(std::vector<float>{10000, 9999, -10000, 1e30f, -1e30f, 1e30f}, {6});
  const std::vector<float> y = sparse_softmax(Var(values), pattern).value().to_vector<float>();
  EXPECT_NEAR(y[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_EQ((std::vector<float>{y[3], y[4], y[5]}), (std::vector<float>{0.5f, 0.0f, 0.5f}));
}

// As in a dense row whose other elements are all -inf too.
TEST(SparseSoftmax, ARowOfMinusInfinityIsNanAsInSoftmax) {
  const auto pattern = std::make_shared<SparseWeight>(Tensor::full({3, 2}, 1, DType::u8));
  const Tensor values = Tensor::from(std::vector<float>{1, -kInfinity, -kInfinity, -kInfinity, 0, 0}, {6});
  const std::vector<float> y = sparse_softmax(Var(values), pattern, 0.5).value().to_vector<float>();
  const std::vector<float> dense = softmax(Var(values.reshape({3, 2}))).value().to_vector<float>();
  for (const std::size_t i : {2, 3}) EXPECT_TRUE(std::isnan(y[i]) && std::isnan(dense[i])) << i;
  EXPECT_EQ((std::vector<float>{y[0], y[1], y[4], y[5]}), (std::vector<float>{1.0f, 0.0f, 0.5f, 0.5f}));
}

// NaN in vector lanes and in the tail, forward and backward. The loops are built with fast-math.
TEST(SparseSoftmax, NanFillsItsRowAndNoOther) {
  const std::int64_t n = 37;
  const auto pattern = std::make_shared<SparseWeight>(Tensor::full({3, n}, 1, DType::u8));
  for (const std::int64_t at : {0, 5, 17, 36}) {
    const Tensor finite = Tensor::full({3 * n}, 0.5), bad = Tensor::full({3 * n}, 0.5);
    bad.data<float>()[n + at] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> y = results_of(bad, pattern, finite, 0.7).y;
    const std::vector<float> grad = results_of(finite, pattern, bad, 0.7).grad;
    for (std::int64_t i = 0; i < 3 * n; ++i) {
      EXPECT_EQ(std::isnan(y[static_cast<std::size_t>(i)]), i / n == 1) << i;
      EXPECT_EQ(std::isnan(grad[static_cast<std::size_t>(i)]), i / n == 1) << i;
    }
  }
}

TEST(SparseSoftmax, SameBytesWhateverTheNumberOfThreads) {
  const SparseWeightPtr pattern = uneven_pattern(997);
  const Tensor values = normal({7, pattern->count()}, "x"), upstream = normal(values.shape(), "g");
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const Results one = results_of(values, pattern, upstream, 0.3);
  omp_set_num_threads(5);
  const Results five = results_of(values, pattern, upstream, 0.3);
  omp_set_num_threads(before);
  EXPECT_EQ(one.y, five.y);
  EXPECT_EQ(one.grad, five.grad);
}

TEST(SparseSoftmax, NamesOperandsThatDoNotFit) {
  const SparseWeightPtr pattern = std::make_shared<SparseWeight>(Tensor::full({3, 4}, 1, DType::u8));
  const auto refusal = [&](const Tensor& values, double scale) {
    return message_of([&] { sparse_softmax(Var(values), pattern, scale); });
  };
  EXPECT_EQ(refusal(Tensor::zeros({2, 11}), 1.0),
            "sparse_softmax: values do not fit: they are [2, 11], the pattern keeps 12 elements of [3, 4]; needs [..., 12]");
  EXPECT_THROW(sparse_softmax(Var(Tensor::zeros({})), pattern), ShapeError);
  EXPECT_EQ(refusal(Tensor::zeros({12}, DType::i64), 1.0), "sparse_softmax: x is i64 [12] on cpu; needs f32, f64 or bf16");
  EXPECT_EQ(refusal(Tensor::zeros({12}), kInfinity), "sparse_softmax: scale is inf; needs a finite number");
  EXPECT_THROW(sparse_softmax(Var(Tensor::zeros({12})), pattern, std::nan("")), ConfigError);
}

}  // namespace
}  // namespace tessera

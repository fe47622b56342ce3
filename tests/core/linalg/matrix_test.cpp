#include <gtest/gtest.h>

#include <limits>

#include "core/linalg/eigh.h"
#include "core/linalg/qr.h"
#include "core/linalg/svd.h"
#include "core/support/error.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

const std::vector<Shape> kMatrices{{1, 1}, {1, 7}, {7, 1}, {5, 3}, {3, 5}, {17, 17}, {33, 20}};

TEST(Svd, ReconstructsWithOrthonormalVectorsAndDescendingValues) {
  for (const Shape& shape : kMatrices) {
    SCOPED_TRACE(str(shape));
    const Tensor a = random_tensor(shape);
    const linalg::Svd f = linalg::svd(a);
    const std::int64_t k = std::min(shape[0], shape[1]);
    ASSERT_EQ(f.u.shape(), (Shape{shape[0], k}));
    ASSERT_EQ(f.s.shape(), Shape{k});
    ASSERT_EQ(f.v.shape(), (Shape{shape[1], k}));
    EXPECT_LT(orthogonality_defect(f.u), 1e-12);
    EXPECT_LT(orthogonality_defect(f.v), 1e-12);
    EXPECT_LT(largest_difference(naive_matmul(scale_columns(f.u, f.s), f.v.permute({1, 0})), a), 1e-12);
    const std::vector<double> s = values(f.s);
    EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()));
    EXPECT_GE(s.back(), 0.0);
  }
}

TEST(Svd, LargestEntryOfEachLeftVectorIsPositive) {
  const Tensor u = linalg::svd(random_tensor({9, 6})).u;
  for (std::int64_t column = 0; column < u.dim(1); ++column) {
    const std::vector<double> entries = values(u.slice(1, column, column + 1));
    const auto by_magnitude = [](double a, double b) { return std::abs(a) < std::abs(b); };
    EXPECT_GT(*std::max_element(entries.begin(), entries.end(), by_magnitude), 0.0);
  }
}

TEST(Svd, NegatedInputGivesTheSameLeftVectors) {
  const Tensor a = random_tensor({6, 4});
  std::vector<double> negated = values(a);
  for (double& value : negated) value = -value;
  EXPECT_LT(largest_difference(linalg::svd(a).u, linalg::svd(Tensor::from(negated, a.shape())).u), 1e-12);
}

TEST(Svd, RankDeficientInputHasZeroValues) {
  const Tensor a = naive_matmul(random_tensor({7, 2}), random_tensor({2, 5}, DType::f64, 2));
  const linalg::Svd f = linalg::svd(a);
  const std::vector<double> s = values(f.s);
  EXPECT_GT(s[1], 0.1);
  EXPECT_LT(s[2], 1e-12);
  EXPECT_LT(orthogonality_defect(f.u), 1e-12);
}

TEST(Svd, KeepsTheInputsDType) {
  const Tensor a = random_tensor({4, 3}, DType::f32);
  const linalg::Svd f = linalg::svd(a);
  EXPECT_EQ(f.u.dtype(), DType::f32);
  EXPECT_LT(largest_difference(naive_matmul(scale_columns(f.u, f.s), f.v.permute({1, 0})), a), 1e-6);
}

TEST(Svd, TakesStridedAndEmptyInput) {
  const Tensor a = random_tensor({5, 3});
  EXPECT_LT(largest_difference(linalg::svd(a.permute({1, 0})).s, linalg::svd(a).s), 1e-12);
  EXPECT_EQ(linalg::svd(Tensor::zeros({0, 3}, DType::f64)).v.shape(), (Shape{3, 0}));
}

TEST(Svd, RefusesWhatItCannotFactor) {
  EXPECT_EQ(message_of<ShapeError>([] { linalg::svd(Tensor::zeros({2, 3, 4})); }),
            "svd: matrix is [2, 3, 4]; needs 2 dimensions");
  EXPECT_EQ(message_of<DTypeError>([] { linalg::svd(Tensor::zeros({2, 3}, DType::i64)); }),
            "svd: dtype is i64; needs f32 or f64");
  EXPECT_EQ(message_of<NumericError>([] { linalg::svd(Tensor::full({2, 2}, std::numeric_limits<double>::quiet_NaN())); }),
            "svd: matrix [2, 2] contains NaN or Inf");
}

TEST(Qr, ReconstructsWithOrthonormalColumnsAndTriangle) {
  for (const Shape& shape : kMatrices) {
    SCOPED_TRACE(str(shape));
    const Tensor a = random_tensor(shape);
    const linalg::Qr f = linalg::qr(a);
    EXPECT_LT(orthogonality_defect(f.q), 1e-12);
    EXPECT_LT(largest_difference(naive_matmul(f.q, f.r), a), 1e-12);
    const std::vector<double> r = values(f.r);
    for (std::int64_t i = 0; i < f.r.dim(0); ++i) {
      EXPECT_GE(r[static_cast<std::size_t>(i * f.r.dim(1) + i)], 0.0);
      for (std::int64_t j = 0; j < std::min(i, f.r.dim(1)); ++j) EXPECT_EQ(r[static_cast<std::size_t>(i * f.r.dim(1) + j)], 0.0);
    }
  }
}

TEST(Qr, TakesEmptyAndRankDeficientInput) {
  EXPECT_EQ(linalg::qr(Tensor::zeros({3, 0}, DType::f64)).q.shape(), (Shape{3, 0}));
  const Tensor zero = Tensor::zeros({4, 2}, DType::f64);
  const linalg::Qr f = linalg::qr(zero);
  EXPECT_LT(orthogonality_defect(f.q), 1e-12);
  EXPECT_EQ(largest_difference(naive_matmul(f.q, f.r), zero), 0.0);
}

TEST(Eigh, ReconstructsWithDescendingValues) {
  for (const std::int64_t n : {1, 2, 7, 33}) {
    SCOPED_TRACE(n);
    const Tensor root = random_tensor({n, n});
    const Tensor a = naive_matmul(root, root, true);
    const linalg::Eigh f = linalg::eigh(a);
    const std::vector<double> eigenvalues = values(f.values);
    EXPECT_TRUE(std::is_sorted(eigenvalues.rbegin(), eigenvalues.rend()));
    EXPECT_LT(orthogonality_defect(f.vectors), 1e-12);
    EXPECT_LT(largest_difference(linalg::eigvalsh(a), f.values), 1e-12 * eigenvalues.front());
    EXPECT_LT(largest_difference(naive_matmul(scale_columns(f.vectors, f.values), f.vectors.permute({1, 0})), a), 1e-10);
  }
}

TEST(Eigh, KeepsNegativeValues) {
  const std::vector<double> entries{0, 1, 1, 0};
  const Tensor expected = Tensor::from(std::vector<double>{1, -1}, {2});
  EXPECT_LT(largest_difference(linalg::eigh(Tensor::from(entries, {2, 2})).values, expected), 1e-15);
}

TEST(Eigh, RefusesRectangles) {
  EXPECT_EQ(message_of<ShapeError>([] { linalg::eigh(Tensor::zeros({2, 3})); }), "eigh: matrix is [2, 3]; must be square");
  EXPECT_EQ(message_of<ShapeError>([] { linalg::eigvalsh(Tensor::zeros({2, 3})); }), "eigh: matrix is [2, 3]; must be square");
}

}  // namespace
}  // namespace tessera::testing

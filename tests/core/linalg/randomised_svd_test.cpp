#include "core/linalg/randomised_svd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/linalg/relative_error.h"
#include "core/support/error.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

Tensor composed(const linalg::Svd& svd) {
  return naive_matmul(scale_columns(svd.u, svd.s), svd.v.permute({1, 0}));
}

// u diag((k + 1)^-power) v' with orthonormal u and v.
Tensor with_spectrum(std::int64_t m, std::int64_t n, double power, DType dtype) {
  const linalg::Svd random = linalg::svd(random_tensor({m, n}, DType::f64, 4));
  std::vector<double> s;
  for (std::int64_t k = 0; k < std::min(m, n); ++k) s.push_back(std::pow(static_cast<double>(k + 1), -power));
  const Tensor values = Tensor::from(s, {std::ssize(s)});
  return composed({.u = random.u, .s = values, .v = random.v}).to(dtype);
}

TEST(RandomisedSvd, ComesNearTheBest) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{60, 40}, {31, 90}, {200, 7}}) {
      for (const double power : {0.0, 1.0, 2.0}) {
        SCOPED_TRACE(str(m, 'x', n, ' ', dtype == DType::f32 ? "f32" : "f64", " power ", power));
        const Tensor a = with_spectrum(m, n, power, dtype);
        const std::vector<double> s = values(linalg::svd(a.to(DType::f64)).s);
        double tail = 0, all = 0;
        for (std::size_t i = 0; i < s.size(); ++i) {
          all += s[i] * s[i];
          if (i >= 5) tail += s[i] * s[i];
        }
        const linalg::Svd found = linalg::randomised_svd(a, 5);
        EXPECT_EQ(found.u.dtype(), dtype);
        EXPECT_LE(linalg::relative_error(composed(found), a.to(DType::f64)), 1.01 * std::sqrt(tail / all) + 1e-5);
        EXPECT_LT(orthogonality_defect(found.u), 1e-5);
        EXPECT_LT(orthogonality_defect(found.v), 1e-5);
      }
    }
  }
}

TEST(RandomisedSvd, IsExactWhereTheSketchHoldsTheMatrix) {
  const Tensor a = naive_matmul(random_tensor({30, 3}, DType::f64, 1), random_tensor({3, 50}, DType::f64, 2));
  EXPECT_LT(linalg::relative_error(composed(linalg::randomised_svd(a, 3)), a), 1e-10);
  const Tensor full = random_tensor({6, 9});
  EXPECT_LT(linalg::relative_error(composed(linalg::randomised_svd(full, 6)), full), 1e-10);
  EXPECT_LT(linalg::relative_error(composed(linalg::randomised_svd(full, 6, {.oversampling = 0, .power_iterations = 0})), full), 1e-10);
  const Tensor one = random_tensor({1, 1});
  EXPECT_LT(linalg::relative_error(composed(linalg::randomised_svd(one, 1)), one), 1e-12);
}

TEST(RandomisedSvd, EqualSeedsGiveEqualFactorsAndZerosStayZero) {
  const Tensor a = random_tensor({20, 30}, DType::f32);
  EXPECT_EQ(values(linalg::randomised_svd(a, 4).u), values(linalg::randomised_svd(a, 4).u));
  EXPECT_NE(values(linalg::randomised_svd(a, 4).u), values(linalg::randomised_svd(a, 4, {.seed = 1}).u));
  EXPECT_EQ(values(linalg::randomised_svd(Tensor::zeros({5, 4}), 2).s), (std::vector<double>{0, 0}));
}

TEST(RandomisedSvd, RefusesWhatItCannotDecompose) {
  const Tensor a = random_tensor({4, 3});
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::randomised_svd(a, 4); }),
            "randomised_svd: rank is 4, the matrix is [4, 3]; legal range is 1..3");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::randomised_svd(a, 1, {.oversampling = -1}); }),
            "randomised_svd: oversampling is -1, power_iterations is 2; needs 0 or more of both");
  a.fill(std::numeric_limits<double>::infinity());
  EXPECT_THROW(linalg::randomised_svd(a, 1), NumericError);
}

}  // namespace
}  // namespace tessera::testing

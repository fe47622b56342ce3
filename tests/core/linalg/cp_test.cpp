#include "core/linalg/cp.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/linalg/relative_error.h"
#include "core/support/error.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

linalg::Cp random_cp(const Shape& shape, std::int64_t rank, std::uint64_t seed) {
  linalg::Cp cp;
  for (int mode = 0; mode < shape.rank(); ++mode) {
    cp.factors.push_back(random_tensor({shape[mode], rank}, DType::f64, seed + static_cast<std::uint64_t>(mode)));
  }
  return cp;
}

double error(const linalg::Cp& cp, const Tensor& tensor) { return linalg::relative_error(linalg::reconstruct(cp), tensor); }

TEST(Cp, ReconstructSumsOuterProducts) {
  const linalg::Cp cp = random_cp({3, 2, 4}, 5, 7);
  const std::vector<double> a = values(cp.factors[0]), b = values(cp.factors[1]), c = values(cp.factors[2]);
  std::vector<double> expected;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      for (std::size_t k = 0; k < 4; ++k) {
        double sum = 0;
        for (std::size_t r = 0; r < 5; ++r) sum += a[i * 5 + r] * b[j * 5 + r] * c[k * 5 + r];
        expected.push_back(sum);
      }
    }
  }
  EXPECT_LT(largest_difference(linalg::reconstruct(cp), Tensor::from(expected, {3, 2, 4})), 1e-13);
}

TEST(Cp, NoSweepRaisesTheResidual) {
  for (const Shape& shape : {Shape{7, 3, 3, 5}, Shape{4, 1, 6}, Shape{9, 5}}) {
    for (const std::int64_t rank : {1, 3, 11}) {
      SCOPED_TRACE(str(shape, " rank ", rank));
      const Tensor x = random_tensor(shape);
      // One sweep at a time. Each starts where the previous one ended.
      linalg::Cp cp = linalg::cp_als(x, rank, {.max_iterations = 0});
      const double first = error(cp, x);
      EXPECT_LT(first, 1.0);
      double last = first;
      for (int sweep = 1; sweep <= 12; ++sweep) {
        cp = linalg::cp_als(x, rank, {.max_iterations = 1, .tolerance = 0}, &cp);
        const double reached = error(cp, x);
        EXPECT_LE(reached * reached, last * last + 1e-12) << sweep;
        last = reached;
      }
      EXPECT_LT(last, first + 1e-9);
    }
  }
}

// A sweep solves least squares for each factor in turn, so the error of a random tensor of several modes keeps falling.
TEST(Cp, SweepsLowerTheError) {
  const Tensor x = random_tensor({7, 3, 3, 5});
  double last = 1;
  for (const std::int64_t sweeps : {0, 1, 5, 50}) {
    const double reached = error(linalg::cp_als(x, 6, {.max_iterations = sweeps, .tolerance = 0}), x);
    EXPECT_LT(reached, last) << sweeps;
    last = reached;
  }
}

TEST(Cp, StaysWhereItIsExact) {
  const linalg::Cp known = random_cp({6, 3, 3, 5}, 4, 3);
  const Tensor x = linalg::reconstruct(known);
  EXPECT_LT(error(linalg::cp_als(x, 4, {}, &known), x), 1e-12);
}

TEST(Cp, FindsATensorOfItsRank) {
  const Tensor x = linalg::reconstruct(random_cp({8, 3, 3, 7}, 2, 5));
  EXPECT_LT(error(linalg::cp_als(x, 2, {.max_iterations = 500, .tolerance = 0}), x), 1e-6);
  EXPECT_LT(error(linalg::cp_als(x, 5, {.max_iterations = 500, .tolerance = 0}), x), 1e-4);
}

// The best approximation of a matrix at a given rank is known (Eckart & Young).
TEST(Cp, OfAMatrixIsItsBestApproximation) {
  const Tensor x = Tensor::from(std::vector<double>{3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0}, {4, 3});
  EXPECT_NEAR(error(linalg::cp_als(x, 2), x), 1 / std::sqrt(14.0), 1e-10);
}

TEST(Cp, SpreadsTheScaleAndKeepsTheDtype) {
  const Tensor x = random_tensor({7, 3, 5}, DType::f32);
  const linalg::Cp cp = linalg::cp_als(x, 4);
  for (std::size_t column = 0; column < 4; ++column) {
    std::vector<double> norms;
    for (const Tensor& factor : cp.factors) {
      EXPECT_EQ(factor.dtype(), DType::f32);
      double sum = 0;
      const std::vector<double> entries = values(factor);
      for (std::size_t i = column; i < entries.size(); i += 4) sum += entries[i] * entries[i];
      norms.push_back(std::sqrt(sum));
    }
    EXPECT_NEAR(norms[0], norms[1], 1e-5 * norms[0]);
    EXPECT_NEAR(norms[0], norms[2], 1e-5 * norms[0]);
  }
}

TEST(Cp, ZerosAndSingleElementsAreDefined) {
  for (const Tensor& factor : linalg::cp_als(Tensor::zeros({3, 2, 4}, DType::f64), 2).factors) {
    EXPECT_EQ(values(factor), values(Tensor::zeros(factor.shape())));
  }
  const Tensor one = Tensor::from(std::vector<double>{-5}, {1, 1, 1});
  EXPECT_LT(error(linalg::cp_als(one, 1), one), 1e-8);
}

TEST(Cp, RefusesWhatItCannotDecompose) {
  const Tensor x = random_tensor({3, 4});
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::cp_als(x, 0); }), "cp: rank is 0; needs at least 1");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::cp_als(Tensor::zeros({3, 0}), 1); }),
            "cp: tensor is [3, 0]; needs two modes or more and must not be empty");
  const linalg::Cp narrow = random_cp({3, 4}, 1, 1);
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::cp_als(x, 2, {}, &narrow); }),
            "cp: the start's factor of mode 0 is [3, 1]; needs [3, 2]");
  x.fill(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THROW(linalg::cp_als(x, 1), NumericError);
}

}  // namespace
}  // namespace tessera::testing

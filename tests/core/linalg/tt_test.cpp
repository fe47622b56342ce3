#include "core/linalg/tt.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/linalg/relative_error.h"
#include "core/support/error.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

using Ranks = std::vector<std::int64_t>;

double error(const linalg::TensorTrain& train, const Tensor& tensor) {
  return linalg::relative_error(linalg::reconstruct(train), tensor);
}

struct Case {
  Shape shape;
  Ranks ranks;
};
const std::vector<Case> kCases{{{4, 3, 5}, {2, 3}},       {{4, 3, 5}, {4, 5}},     {{7, 9}, {3}},      {{2, 4, 9, 3, 2}, {2, 5, 4, 2}},
                               {{1, 6, 1, 2}, {1, 2, 2}}, {{1, 1}, {1}}, {{3, 1, 40}, {3, 3}}};

TEST(TensorTrain, ReconstructMultipliesTheCores) {
  linalg::TensorTrain train;
  train.cores = {random_tensor({1, 3, 2}, DType::f64, 1), random_tensor({2, 4, 3}, DType::f64, 2),
                 random_tensor({3, 2, 1}, DType::f64, 3)};
  const std::vector<double> a = values(train.cores[0]), b = values(train.cores[1]), c = values(train.cores[2]);
  std::vector<double> expected;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t k = 0; k < 2; ++k) {
        double sum = 0;
        for (std::size_t r = 0; r < 2; ++r) {
          for (std::size_t s = 0; s < 3; ++s) sum += a[i * 2 + r] * b[(r * 4 + j) * 3 + s] * c[s * 2 + k];
        }
        expected.push_back(sum);
      }
    }
  }
  EXPECT_LT(largest_difference(linalg::reconstruct(train), Tensor::from(expected, {3, 4, 2})), 1e-13);
}

// Each unfolding's tail alone is a lower bound, together they are an upper one (Oseledets 2011, theorem 2.2).
TEST(TensorTrain, ErrorLiesBetweenTheBoundsOfTheUnfoldings) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(str(c.shape));
    const Tensor x = random_tensor(c.shape);
    double sum = 0, most = 0, all = 0;
    const std::vector<std::vector<double>> spectra = linalg::tt_spectra(x);
    ASSERT_EQ(spectra.size(), c.ranks.size());
    for (std::size_t k = 0; k < spectra.size(); ++k) {
      double tail = 0;
      all = 0;
      for (std::size_t i = 0; i < spectra[k].size(); ++i) {
        all += spectra[k][i] * spectra[k][i];
        if (static_cast<std::int64_t>(i) >= c.ranks[k]) tail += spectra[k][i] * spectra[k][i];
      }
      sum += tail;
      most = std::max(most, tail);
    }
    const linalg::TensorTrain train = linalg::tt_svd(x, c.ranks);
    const double reached = error(train, x);
    EXPECT_LE(reached * reached, sum / all + 1e-12);
    EXPECT_GE(reached * reached, most / all - 1e-12);
    const Tensor again = linalg::reconstruct(train);
    EXPECT_LT(error(linalg::tt_svd(again, c.ranks), again), 1e-7);
  }
}

TEST(TensorTrain, CoresShareTheScaleAndKeepTheDtype) {
  const linalg::TensorTrain train = linalg::tt_svd(random_tensor({4, 6, 5}, DType::f32), Ranks{3, 2});
  std::vector<double> norms;
  for (const Tensor& core : train.cores) {
    EXPECT_EQ(core.dtype(), DType::f32);
    double sum = 0;
    for (const double value : values(core)) sum += value * value;
    norms.push_back(std::sqrt(sum));
  }
  EXPECT_NEAR(norms[0], norms[1], 1e-5 * norms[0]);
  EXPECT_NEAR(norms[0], norms[2], 1e-5 * norms[0]);
}

TEST(TensorTrain, RanksFollowFromAnError) {
  const Tensor x = random_tensor({6, 5, 7, 4});
  for (const double allowed : {0.0, 0.1, 0.5, 0.9}) {
    SCOPED_TRACE(allowed);
    const linalg::TensorTrain train = linalg::tt_svd(x, allowed);
    EXPECT_LE(error(train, x), allowed + 1e-12);
    EXPECT_EQ(train.cores[1].dim(2) < 28, allowed > 0);
  }
  linalg::TensorTrain low;
  low.cores = {random_tensor({1, 6, 2}), random_tensor({2, 5, 3}, DType::f64, 2), random_tensor({3, 7, 1}, DType::f64, 3)};
  const linalg::TensorTrain found = linalg::tt_svd(linalg::reconstruct(low), 1e-10);
  EXPECT_EQ(found.cores[0].shape(), (Shape{1, 6, 2}));
  EXPECT_EQ(found.cores[1].shape(), (Shape{2, 5, 3}));
}

TEST(TensorTrain, ZerosAreDefinedAndFaultsAreNamed) {
  const Tensor zero = Tensor::zeros({3, 2, 2}, DType::f64);
  EXPECT_EQ(values(linalg::reconstruct(linalg::tt_svd(zero, Ranks{2, 2}))), values(zero));
  const Tensor x = random_tensor({3, 4, 2});
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_svd(x, Ranks{2}); }), "tt_svd: 1 ranks for a tensor [3, 4, 2]; needs 2");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_svd(x, Ranks{4, 2}); }), "tt_svd: rank 1 is 4; legal range is 1..3");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_svd(x, Ranks{2, 3}); }), "tt_svd: rank 2 is 3; legal range is 1..2");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_svd(x, 1.0); }), "tt_svd: error is 1; must be in [0, 1)");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_svd(Tensor::zeros({3}), Ranks{}); }),
            "tt_svd: tensor is [3]; needs two modes or more and must not be empty");
  x.fill(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THROW(linalg::tt_svd(x, Ranks{1, 1}), NumericError);
}

}  // namespace
}  // namespace tessera::testing

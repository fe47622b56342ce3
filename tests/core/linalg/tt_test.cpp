#include "core/linalg/tt.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>

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
const std::vector<Case> kCases{
    {{4, 3, 5}, {2, 3}},       {{4, 3, 5}, {4, 5}}, {{7, 9}, {3}},       {{2, 4, 9, 3, 2}, {2, 5, 4, 2}},
    {{1, 6, 1, 2}, {1, 2, 2}}, {{1, 1}, {1}},       {{3, 1, 40}, {3, 3}}};

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

// The tail of each unfolding is a lower bound, and all tails together are an upper bound (Oseledets 2011, theorem 2.2).
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

linalg::TensorTrain random_train(const Shape& shape, const Ranks& ranks, DType dtype = DType::f64) {
  linalg::TensorTrain train;
  for (int k = 0; k < shape.rank(); ++k) {
    const std::int64_t left = k == 0 ? 1 : ranks[static_cast<std::size_t>(k) - 1];
    const std::int64_t right = k + 1 == shape.rank() ? 1 : ranks[static_cast<std::size_t>(k)];
    train.cores.push_back(random_tensor({left, shape[k], right}, dtype, static_cast<std::uint64_t>(k) + 1));
  }
  return train;
}

Ranks ranks_of(const linalg::TensorTrain& train) {
  Ranks ranks;
  for (std::size_t k = 0; k + 1 < train.cores.size(); ++k) ranks.push_back(train.cores[k].dim(2));
  return ranks;
}

// x + y: the cores of x and y become diagonal blocks. They are side by side in the first core and stacked in the last.
linalg::TensorTrain sum(const linalg::TensorTrain& x, const linalg::TensorTrain& y) {
  linalg::TensorTrain both;
  for (std::size_t k = 0; k < x.cores.size(); ++k) {
    const Tensor &a = x.cores[k], &b = y.cores[k];
    const bool first = k == 0, last = k + 1 == x.cores.size();
    const std::int64_t left = first ? 1 : a.dim(0) + b.dim(0), right = last ? 1 : a.dim(2) + b.dim(2);
    const Tensor core = Tensor::zeros({left, a.dim(1), right}, a.dtype());
    core.slice(0, 0, a.dim(0)).slice(2, 0, a.dim(2)).copy_from(a);
    core.slice(0, left - b.dim(0), left).slice(2, right - b.dim(2), right).copy_from(b);
    both.cores.push_back(core);
  }
  return both;
}

// The tails of the unfoldings bound the error of rounding like that of tt_svd, and both cut the same part.
TEST(TensorTrainRounding, IsTheDecompositionOfTheWholeTensor) {
  for (const auto& [shape, from, to] : std::vector<std::tuple<Shape, Ranks, Ranks>>{{{4, 3, 5}, {4, 5}, {2, 3}},
                                                                                    {{7, 9}, {5}, {3}},
                                                                                    {{2, 4, 9, 3, 2}, {2, 7, 6, 2}, {1, 4, 4, 2}},
                                                                                    {{1, 6, 1, 2}, {1, 2, 2}, {1, 1, 1}},
                                                                                    {{1, 1}, {1}, {1}},
                                                                                    {{6}, {}, {}}}) {
    SCOPED_TRACE(str(shape));
    const linalg::TensorTrain train = random_train(shape, from);
    const Tensor x = linalg::reconstruct(train);
    const linalg::TensorTrain rounded = linalg::tt_round(train, to);
    EXPECT_EQ(ranks_of(rounded), to);
    if (shape.rank() < 2) {
      EXPECT_LT(error(rounded, x), 1e-12);
      continue;
    }
    EXPECT_NEAR(error(rounded, x), error(linalg::tt_svd(x, to), x), 1e-10);
    const Tensor once = linalg::reconstruct(rounded);
    EXPECT_LT(error(linalg::tt_round(rounded, to), once), 1e-12);
    EXPECT_LT(error(linalg::tt_round(train, from), x), 1e-12);
  }
}

TEST(TensorTrainRounding, KeepsTheErrorAndIsIdempotent) {
  const linalg::TensorTrain train = random_train({6, 5, 7, 4}, {6, 20, 4});
  const Tensor x = linalg::reconstruct(train);
  for (const double allowed : {1e-10, 0.1, 0.5, 0.9}) {
    SCOPED_TRACE(allowed);
    const linalg::TensorTrain rounded = linalg::tt_round(train, allowed);
    EXPECT_LE(error(rounded, x), allowed + 1e-12);
    EXPECT_EQ(ranks_of(rounded), ranks_of(linalg::tt_svd(x, allowed)));
    const linalg::TensorTrain again = linalg::tt_round(rounded, 1e-10);
    EXPECT_EQ(ranks_of(again), ranks_of(rounded));
    EXPECT_LT(error(again, linalg::reconstruct(rounded)), 1e-10);
  }
}

TEST(TensorTrainRounding, RanksNeverGrow) {
  const linalg::TensorTrain train = random_train({6, 5, 4}, {2, 3});
  EXPECT_EQ(ranks_of(linalg::tt_round(train, Ranks{6, 4})), (Ranks{2, 3}));
  for (const double allowed : {0.0, 1e-12, 0.3}) {
    const Ranks ranks = ranks_of(linalg::tt_round(train, allowed));
    EXPECT_LE(ranks[0], 2);
    EXPECT_LE(ranks[1], 3);
  }
  // A train's ranks may be larger than the sides of its unfoldings.
  EXPECT_EQ(ranks_of(linalg::tt_round(random_train({2, 3, 2}, {9, 8}), Ranks{9, 8})), (Ranks{2, 2}));
}

TEST(TensorTrainRounding, ASumWithItselfHasTheRanksOfOne) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double allowed = dtype == DType::f64 ? 1e-12 : 1e-6;
    const linalg::TensorTrain train = random_train({6, 5, 7, 4}, {3, 5, 2}, dtype);
    const linalg::TensorTrain twice = sum(train, train);
    EXPECT_EQ(ranks_of(twice), (Ranks{6, 10, 4}));
    const linalg::TensorTrain rounded = linalg::tt_round(twice, allowed);
    EXPECT_EQ(ranks_of(rounded), (Ranks{3, 5, 2}));
    EXPECT_EQ(rounded.cores[0].dtype(), dtype);
    EXPECT_LT(error(rounded, linalg::reconstruct(twice)), dtype == DType::f64 ? 1e-12 : 1e-6);
    // Zeros round to ranks of 1.
    const linalg::TensorTrain zero = sum({{Tensor::zeros({1, 6, 3}, dtype), train.cores[1], train.cores[2], train.cores[3]}},
                                         {{Tensor::zeros({1, 6, 3}, dtype), train.cores[1], train.cores[2], train.cores[3]}});
    EXPECT_EQ(ranks_of(linalg::tt_round(zero, allowed)), (Ranks{1, 1, 1}));
    EXPECT_EQ(values(linalg::reconstruct(linalg::tt_round(zero, Ranks{2, 2, 2}))), values(Tensor::zeros({6, 5, 7, 4})));
  }
}

TEST(TensorTrainRounding, NamesWhatDoesNotFit) {
  linalg::TensorTrain train = random_train({3, 4, 2}, {2, 2});
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_round(train, Ranks{2}); }),
            "tt_round: 1 ranks for a train of 3 cores; needs 2");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_round(train, Ranks{2, 0}); }), "tt_round: rank 2 is 0; needs at least 1");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_round(train, -0.1); }), "tt_round: error is -0.1; must be in [0, 1)");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_round({}, 0.1); }), "tt_round: the train has no cores");
  train.cores[1] = random_tensor({3, 4, 2});
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_round(train, 0.1); }),
            "tt_round: core 2 of 3 is [3, 4, 2]; needs [2, n, r], not empty");
  train.cores[1] = random_tensor({2, 4, 2});
  train.cores[2] = random_tensor({2, 2, 2});
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::tt_round(train, 0.1); }),
            "tt_round: core 3 of 3 is [2, 2, 2]; needs [2, n, 1], not empty");
  train.cores[2] = Tensor::full({2, 2, 1}, std::numeric_limits<double>::quiet_NaN(), DType::f64);
  EXPECT_THROW(linalg::tt_round(train, 0.1), NumericError);
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

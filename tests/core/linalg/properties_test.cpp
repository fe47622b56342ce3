// What every decomposition promises, on the same tensors: error bounds, idempotent projections and edge cases of matrices. Each
// decomposition's own test covers what is special to it.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <numeric>

#include "core/linalg/cp.h"
#include "core/linalg/qr.h"
#include "core/linalg/randomised_svd.h"
#include "core/linalg/relative_error.h"
#include "core/linalg/tt.h"
#include "core/linalg/tucker.h"
#include "core/linalg/unfold.h"
#include "core/support/error.h"
#include "tests/core/linalg/linalg_support.h"

namespace tessera::testing {
namespace {

using Ranks = std::vector<std::int64_t>;

double squared_norm(const Tensor& tensor) {
  double sum = 0;
  for (const double value : values(tensor)) sum += value * value;
  return sum;
}

// The squared distance of a matrix to the nearest matrix of this rank, computed from its singular values.
double squared_tail(const Tensor& matrix, std::int64_t rank) {
  const std::vector<double> s = values(linalg::svd(matrix).s);
  double sum = 0;
  for (std::size_t i = static_cast<std::size_t>(rank); i < s.size(); ++i) sum += s[i] * s[i];
  return sum;
}

double squared_distance(const Tensor& x, const Tensor& y) {
  const double relative = linalg::relative_error(x, y);
  return relative * relative * squared_norm(y);
}

Tensor composed(const linalg::Svd& f, std::int64_t rank) {
  return naive_matmul(scale_columns(f.u.slice(1, 0, rank), f.s.slice(0, 0, rank)), f.v.slice(1, 0, rank).permute({1, 0}));
}

// No approximation of a matrix with these singular values is nearer than the root of the discarded squares (Eckart & Young).
TEST(Properties, TruncatedSvdReachesTheOptimum) {
  for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{17, 11}, {5, 31}, {23, 23}, {1, 7}}) {
    const std::int64_t k = std::min(m, n);
    std::vector<double> s(static_cast<std::size_t>(k));
    for (std::size_t i = 0; i < s.size(); ++i) s[i] = 3.0 / static_cast<double>((i + 1) * (i + 1));
    const Tensor u = linalg::qr(random_tensor({m, k}, DType::f64, 1)).q, v = linalg::qr(random_tensor({n, k}, DType::f64, 2)).q;
    const Tensor a = naive_matmul(scale_columns(u, Tensor::from(s, {k})), v.permute({1, 0}));
    const linalg::Svd f = linalg::svd(a);
    EXPECT_LT(largest_difference(f.s, Tensor::from(s, {k})), 1e-13);
    double tail = 0;
    for (std::int64_t rank = k; rank >= 1; --rank) {
      EXPECT_NEAR(std::sqrt(squared_distance(composed(f, rank), a)), std::sqrt(tail), 1e-10) << m << 'x' << n << " rank " << rank;
      tail += s[static_cast<std::size_t>(rank) - 1] * s[static_cast<std::size_t>(rank) - 1];
    }
  }
}

// A way to approximate a tensor at given ranks. It takes one rank for each unfolding whose rank it bounds.
struct Projection {
  std::string name;
  std::function<Tensor(const Tensor&, const Ranks&)> run;
  std::function<std::vector<Tensor>(const Tensor&)> unfoldings;
};

std::vector<int> all_modes(const Tensor& x) {
  std::vector<int> modes(static_cast<std::size_t>(x.rank()));
  std::iota(modes.begin(), modes.end(), 0);
  return modes;
}

std::vector<Projection> projections() {
  const auto by_mode = [](const Tensor& x) {
    std::vector<Tensor> matrices;
    for (const int mode : all_modes(x)) matrices.push_back(linalg::unfold(x, mode));
    return matrices;
  };
  const auto by_prefix = [](const Tensor& x) {
    std::vector<Tensor> matrices;
    std::int64_t rows = 1;
    for (int mode = 0; mode + 1 < x.rank(); ++mode) {
      rows *= x.dim(mode);
      matrices.push_back(x.reshape({rows, x.numel() / rows}));
    }
    return matrices;
  };
  return {
      {"st_hosvd", [](const Tensor& x, const Ranks& r) { return linalg::reconstruct(linalg::st_hosvd(x, all_modes(x), r)); },
       by_mode},
      {"hooi", [](const Tensor& x, const Ranks& r) { return linalg::reconstruct(linalg::hooi(x, all_modes(x), r)); }, by_mode},
      {"tt_svd", [](const Tensor& x, const Ranks& r) { return linalg::reconstruct(linalg::tt_svd(x, r)); }, by_prefix}};
}

// Half the smaller side of each unfolding, but at least one.
Ranks half_ranks(const std::vector<Tensor>& unfoldings, const Tensor& x) {
  Ranks ranks;
  for (const Tensor& matrix : unfoldings) {
    // A train's core must not be wider than its number of rows, which the previous rank determines.
    const std::int64_t left =
        ranks.size() < unfoldings.size() && unfoldings.size() < static_cast<std::size_t>(x.rank()) && !ranks.empty()
            ? ranks.back() * x.dim(static_cast<int>(ranks.size()))
            : matrix.dim(0);
    ranks.push_back(std::max<std::int64_t>(1, std::min({matrix.dim(0), matrix.dim(1), left}) / 2));
  }
  return ranks;
}

const std::vector<Shape> kShapes{{7, 5, 6}, {4, 3, 3, 5}, {9, 4}, {2, 13, 1, 3}, {1, 1, 1}, {3, 2, 2, 2, 3}};

// The upper bounds are theorem 2 of Vannieuwenhoven et al. 2012 and theorem 2.2 of Oseledets 2011. The lower bound holds because
// the approximation's unfolding has the given rank.
TEST(Properties, ErrorLiesBetweenTheLargestTailAndTheSumOfAll) {
  for (const Projection& p : projections()) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(str(p.name, ' ', shape));
      const Tensor x = random_tensor(shape);
      const std::vector<Tensor> unfoldings = p.unfoldings(x);
      const Ranks ranks = half_ranks(unfoldings, x);
      double largest = 0, sum = 0;
      for (std::size_t k = 0; k < ranks.size(); ++k) {
        const double tail = squared_tail(unfoldings[k], ranks[k]);
        largest = std::max(largest, tail);
        sum += tail;
      }
      const double error = squared_distance(p.run(x, ranks), x), rounding = 1e-12 * squared_norm(x);
      EXPECT_GE(error, largest - rounding);
      EXPECT_LE(error, sum + rounding);
    }
  }
}

TEST(Properties, ProjectionsAreIdempotent) {
  for (const Projection& p : projections()) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(str(p.name, ' ', shape));
      const Tensor x = random_tensor(shape);
      const Ranks ranks = half_ranks(p.unfoldings(x), x);
      const Tensor once = p.run(x, ranks);
      EXPECT_LT(linalg::relative_error(p.run(once, ranks), once), 1e-6);
    }
  }
}

// Alternating least squares from another start may end elsewhere.
TEST(Properties, CpStartedFromItsOwnFactorsIsIdempotent) {
  for (const Shape& shape : kShapes) {
    for (const std::int64_t rank : {1, 3}) {
      SCOPED_TRACE(str(shape, " rank ", rank));
      const linalg::Cp cp = linalg::cp_als(random_tensor(shape), rank);
      const Tensor once = linalg::reconstruct(cp);
      EXPECT_LT(linalg::relative_error(linalg::reconstruct(linalg::cp_als(once, rank, {}, &cp)), once), 1e-6);
    }
  }
}

// Every decomposition of a matrix, reconstructed at a given rank.
struct OfAMatrix {
  std::string name;
  std::function<Tensor(const Tensor&, std::int64_t)> run;
  double tolerance = 1e-10;  // for a matrix that has the rank
};

std::vector<OfAMatrix> all_of_matrices() {
  std::vector<OfAMatrix> all{
      {"svd", [](const Tensor& a, std::int64_t rank) { return composed(linalg::svd(a), rank); }},
      {"randomised_svd", [](const Tensor& a, std::int64_t rank) { return composed(linalg::randomised_svd(a, rank), rank); }},
      // The proximal term limits the accuracy of ALS to the square root of its weight.
      {"cp", [](const Tensor& a, std::int64_t rank) { return linalg::reconstruct(linalg::cp_als(a, rank)); }, 1e-7}};
  for (const Projection& p : projections()) {
    const bool train = p.name == "tt_svd";
    all.push_back({p.name, [=](const Tensor& a, std::int64_t rank) {
                     return p.run(a, train ? Ranks{rank} : Ranks{rank, rank});
                   }});
  }
  return all;
}

TEST(Properties, ZerosAreDecomposedIntoZeros) {
  for (const OfAMatrix& d : all_of_matrices()) {
    for (const Shape& shape : {Shape{1, 1}, Shape{5, 3}, Shape{3, 7}}) {
      const Tensor zero = Tensor::zeros(shape, DType::f64);
      for (std::int64_t rank = 1; rank <= std::min(shape[0], shape[1]); ++rank) {
        EXPECT_EQ(squared_norm(d.run(zero, rank)), 0.0) << d.name << ' ' << shape << " rank " << rank;
      }
    }
  }
}

TEST(Properties, AMatrixOfLowerRankIsDecomposedExactly) {
  const Tensor a = naive_matmul(random_tensor({9, 2}), random_tensor({2, 7}, DType::f64, 2));
  for (const OfAMatrix& d : all_of_matrices()) {
    for (const std::int64_t rank : {2, 3, 7}) {
      EXPECT_LT(linalg::relative_error(d.run(a, rank), a), d.tolerance) << d.name << " rank " << rank;
    }
  }
}

TEST(Properties, OneElementIsDecomposedExactly) {
  const Tensor a = Tensor::full({1, 1}, -3.5, DType::f64);
  for (const OfAMatrix& d : all_of_matrices()) EXPECT_LT(linalg::relative_error(d.run(a, 1), a), d.tolerance) << d.name;
}

TEST(Properties, NanAndInfAreRefused) {
  for (const OfAMatrix& d : all_of_matrices()) {
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
      const Tensor a = random_tensor({4, 3});
      a.slice(0, 2, 3).slice(1, 1, 2).fill(value);
      EXPECT_THROW(d.run(a, 2), NumericError) << d.name << ' ' << value;
    }
  }
}

// No step may need the square of the longer side: that would take 200 MB and minutes.
TEST(Properties, HugeAspectRatiosAreDecomposed) {
  for (const Shape& shape : {Shape{2, 5000}, Shape{5000, 2}, Shape{1, 5000}, Shape{5000, 1}}) {
    const Tensor a = random_tensor(shape);
    const std::int64_t full = std::min(shape[0], shape[1]);
    const double best = std::sqrt(squared_tail(a, 1) / squared_norm(a));
    for (const OfAMatrix& d : all_of_matrices()) {
      SCOPED_TRACE(str(d.name, ' ', shape));
      EXPECT_LT(linalg::relative_error(d.run(a, full), a), d.tolerance);
      EXPECT_NEAR(linalg::relative_error(d.run(a, 1), a), best, 1e-3 * best + d.tolerance);
    }
  }
  // The rank is larger than the unfolding's number of columns: the added columns are orthonormal to the others.
  const Tensor a = random_tensor({5000, 2});
  const linalg::Tucker t = linalg::st_hosvd(a, std::vector<int>{0}, Ranks{4});
  EXPECT_LT(orthogonality_defect(t.factors[0]), 1e-12);
  EXPECT_LT(linalg::relative_error(linalg::reconstruct(t), a), 1e-12);
}

}  // namespace
}  // namespace tessera::testing

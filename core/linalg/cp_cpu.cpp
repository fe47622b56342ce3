#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "core/linalg/cp.h"
#include "core/linalg/eigen_matrix.h"
#include "core/linalg/eigh.h"
#include "core/linalg/products.h"
#include "core/linalg/svd.h"
#include "core/linalg/unfold.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

constexpr double kProximity = 1e-9;

using Factors = std::vector<Matrix>;

Matrix mode_matrix(const Tensor& tensor, int mode) { return to_matrix(unfold(tensor, mode), "cp"); }

// Column-wise Kronecker product of all factors except `mode`'s: row (i, j, ...) is the product of their rows i, j, ...
Matrix khatri_rao(const Factors& factors, int mode) {
  Matrix product = Matrix::Ones(1, factors.front().cols());
  for (std::size_t m = 0; m < factors.size(); ++m) {
    if (static_cast<int>(m) == mode) continue;
    Matrix wider(product.rows() * factors[m].rows(), product.cols());
    for (Eigen::Index i = 0; i < product.rows(); ++i) {
      wider.middleRows(i * factors[m].rows(), factors[m].rows()) = factors[m] * product.row(i).asDiagonal();
    }
    product = std::move(wider);
  }
  return product;
}

// Initial factor: leading left singular vectors of the unfolding, then normal numbers as large as the entries of a vector.
Matrix start_of(const Matrix& unfolded, std::int64_t rank, int mode) {
  const Tensor matrix = to_tensor(unfolded, DType::f64);
  const bool tall = unfolded.rows() > unfolded.cols();  // the Gram matrix would then be larger, sometimes by far
  const Matrix vectors = to_matrix(tall ? svd(matrix).u : eigh(gram_f64(matrix)).vectors, "cp");
  const Tensor drawn = Tensor::empty({unfolded.rows(), rank}, DType::f64);
  fill_normal(drawn, RngStream(0, "cp", str("mode", mode)), 0, 1 / std::sqrt(static_cast<double>(unfolded.rows())));
  Matrix factor = to_matrix(drawn, "cp");
  const Eigen::Index known = std::min<Eigen::Index>(rank, vectors.cols());
  factor.leftCols(known) = vectors.leftCols(known);
  return factor;
}

// Spreads the norm of each component over the modes.
void share_scale(Factors& factors) {
  for (Eigen::Index c = 0; c < factors.front().cols(); ++c) {
    double log_sum = 0;
    for (const Matrix& factor : factors) log_sum += std::log(factor.col(c).norm());
    const double shared = std::exp(log_sum / static_cast<double>(factors.size()));  // 0 if one of the norms is 0
    for (Matrix& factor : factors) {
      const double norm = factor.col(c).norm();
      factor.col(c) *= norm > 0 && shared > 0 ? shared / norm : 0.0;
    }
  }
}

// Alternating least squares. The first d - 1 modes sum over the tensor times the last factor. Only the last mode forms its whole
// Khatri-Rao product. It has the fewest rows per column, because the last mode is a weight's input channels.
class Als {
 public:
  Als(const Tensor& tensor, Factors factors)
      : unfolded_(mode_matrix(tensor, tensor.rank() - 1)), norm_(unfolded_.norm()), factors_(std::move(factors)) {}

  double norm() const { return norm_; }
  Factors& factors() { return factors_; }

  void fit_last() {
    products_ = unfolded_ * khatri_rao(factors_, last());
    solve(last(), products_);
  }

  void sweep() {
    const Matrix contracted = unfolded_.transpose() * factors_.back();  // [n_0 ... n_(d-2), r]
    for (int mode = 0; mode < last(); ++mode) solve(mode, sum_over_others(contracted, mode));
    fit_last();
  }

  // Valid after fit_last(): ||X - X~||^2 = ||X||^2 - 2 <X, X~> + ||X~||^2.
  double relative_error() const {
    const double inner = products_.cwiseProduct(factors_.back()).sum();
    const double composed = gram(-1).sum();
    return std::sqrt(std::max(0.0, 1 - (2 * inner - composed) / (norm_ * norm_)));
  }

 private:
  int last() const { return static_cast<int>(factors_.size()) - 1; }

  // Gram matrix of the Khatri-Rao product of all factors except `mode`'s: the element-wise product of their Gram matrices.
  Matrix gram(int mode) const {
    Matrix product = Matrix::Ones(factors_[0].cols(), factors_[0].cols());
    for (int m = 0; m <= last(); ++m) {
      const Matrix& factor = factors_[static_cast<std::size_t>(m)];
      if (m != mode) product = product.cwiseProduct(factor.transpose() * factor).eval();
    }
    return product;
  }

  // `right`: the mode's unfolding times the Khatri-Rao product of the others.
  void solve(int mode, const Matrix& right) {
    Matrix system = gram(mode);
    const double mu = kProximity * std::max(system.trace() / static_cast<double>(system.rows()), 1e-300);
    system.diagonal().array() += mu;
    Matrix& factor = factors_[static_cast<std::size_t>(mode)];
    factor = system.llt().solve((right + mu * factor).transpose()).transpose();
  }

  // Multiplies the rows of `contracted` by the other factors' rows of the same indices; sums the products by the mode's index.
  Matrix sum_over_others(const Matrix& contracted, int mode) const {
    Matrix sum = Matrix::Zero(factors_[static_cast<std::size_t>(mode)].rows(), contracted.cols());
    Eigen::RowVectorXd product(contracted.cols());
    for (Eigen::Index row = 0; row < contracted.rows(); ++row) {
      product = contracted.row(row);
      Eigen::Index rest = row, target = 0;
      for (int m = last() - 1; m >= 0; --m) {
        const Matrix& factor = factors_[static_cast<std::size_t>(m)];
        const Eigen::Index index = rest % factor.rows();
        rest /= factor.rows();
        if (m == mode) {
          target = index;
        } else {
          product = product.cwiseProduct(factor.row(index)).eval();
        }
      }
      sum.row(target) += product;
    }
    return sum;
  }

  Matrix unfolded_;  // [n_last, rest]
  double norm_;
  Factors factors_;
  Matrix products_;  // unfolded_ times its Khatri-Rao product, from the last fit
};

Factors start_factors(const Tensor& tensor, std::int64_t rank, const Cp* start) {
  Factors factors;
  for (int mode = 0; mode < tensor.rank(); ++mode) {
    if (start == nullptr) {
      factors.push_back(start_of(mode_matrix(tensor, mode), rank, mode));
      continue;
    }
    const Shape needed{tensor.dim(mode), rank};
    TESSERA_CHECK(std::ssize(start->factors) == tensor.rank(), ShapeError, "cp: the start has ", start->factors.size(),
                  " factors, the tensor ", tensor.rank(), " modes");
    const Tensor& given = start->factors[static_cast<std::size_t>(mode)];
    TESSERA_CHECK(given.shape() == needed, ShapeError, "cp: the start's factor of mode ", mode, " is ", given.shape(), "; needs ",
                  needed);
    factors.push_back(to_matrix(given.to(Device::cpu()), "cp"));
  }
  return factors;
}

}  // namespace

Cp cp_als(const Tensor& tensor, std::int64_t rank, const CpOptions& options, const Cp* start) {
  TESSERA_CHECK(tensor.rank() >= 2 && tensor.numel() > 0, ShapeError, "cp: tensor is ", tensor.shape(),
                "; needs two modes or more and must not be empty");
  TESSERA_CHECK(rank >= 1, ShapeError, "cp: rank is ", rank, "; needs at least 1");
  const Tensor host = tensor.to(Device::cpu());
  Als als(host, start_factors(host, rank, start));
  Factors best;
  if (als.norm() == 0) {
    best = als.factors();
    for (Matrix& factor : best) factor.setZero();
  } else {
    als.fit_last();
    best = als.factors();
    double lowest = als.relative_error();
    for (std::int64_t i = 0; i < options.max_iterations && lowest > 0; ++i) {
      als.sweep();
      const double reached = als.relative_error();
      const double gain = lowest - reached;
      if (!(gain > 0)) break;  // rounding: the iteration itself never raises the error
      share_scale(als.factors());
      best = als.factors();
      lowest = reached;
      if (gain < options.tolerance) break;
    }
    share_scale(best);
  }
  Cp cp;
  for (const Matrix& factor : best) cp.factors.push_back(to_tensor(factor, tensor.dtype()));
  return cp;
}

Tensor reconstruct(const Cp& cp) {
  Factors factors;
  std::vector<std::int64_t> sizes;
  for (const Tensor& factor : cp.factors) {
    factors.push_back(to_matrix(factor.to(Device::cpu()), "cp"));
    sizes.push_back(factor.dim(0));
  }
  const Matrix matrix = factors[0] * khatri_rao(factors, 0).transpose();
  const Tensor tensor = to_tensor(matrix, cp.factors.front().dtype()).reshape(Shape(std::span<const std::int64_t>(sizes)));
  return tensor.to(cp.factors.front().device());
}

}  // namespace tessera::linalg

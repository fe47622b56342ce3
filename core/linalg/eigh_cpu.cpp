#include "core/linalg/eigh.h"

#include <Eigen/Eigenvalues>

#include "core/linalg/eigen_matrix.h"
#include "core/support/error.h"

namespace tessera {
namespace {

using linalg::Matrix;
using linalg::Vector;
using Solver = Eigen::SelfAdjointEigenSolver<Matrix>;

// `a` must have at least one row.
Solver solve(const Tensor& a, int options) {
  Solver solver(linalg::to_matrix(a, "eigh"), options);
  TESSERA_CHECK(solver.info() == Eigen::Success, NumericError, "eigh: no convergence on a matrix ", a.shape());
  return solver;
}

}  // namespace

linalg::Eigh cpu::eigh_of(const Tensor& a, bool vectors) {
  if (a.numel() == 0) return {Tensor::empty({0}, a.dtype()), Tensor::empty({0, 0}, a.dtype())};
  const Solver solver = solve(a, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  const Tensor values = linalg::to_tensor(Vector(solver.eigenvalues().reverse()), a.dtype());
  if (!vectors) return {values, {}};
  Matrix columns = solver.eigenvectors().rowwise().reverse();  // the solver's order is ascending
  for (Eigen::Index i = 0; i < columns.cols(); ++i) columns.col(i) *= linalg::reproducible_sign(columns.col(i));
  return {values, linalg::to_tensor(columns, a.dtype())};
}

}  // namespace tessera

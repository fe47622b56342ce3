#include "core/linalg/eigh.h"

#include <Eigen/Eigenvalues>

#include "core/error.h"
#include "core/linalg/eigen_matrix.h"

namespace tessera::linalg {
namespace {

using Solver = Eigen::SelfAdjointEigenSolver<Matrix>;

// `a` has at least one row.
Solver solve(const Tensor& a, int options) {
  const Matrix matrix = to_matrix(a, "eigh");
  TESSERA_CHECK(matrix.rows() == matrix.cols(), ShapeError, "eigh: matrix is ", a.shape(), "; must be square");
  Solver solver(matrix, options);
  TESSERA_CHECK(solver.info() == Eigen::Success, NumericError, "eigh: no convergence on a matrix ", a.shape());
  return solver;
}

}  // namespace

Eigh eigh(const Tensor& a) {
  if (a.shape() == Shape{0, 0}) return {Tensor::empty({0}, a.dtype()), Tensor::empty({0, 0}, a.dtype())};
  const Solver solver = solve(a, Eigen::ComputeEigenvectors);
  Matrix vectors = solver.eigenvectors().rowwise().reverse();  // the solver's order is ascending
  for (Eigen::Index i = 0; i < vectors.cols(); ++i) vectors.col(i) *= reproducible_sign(vectors.col(i));
  return {to_tensor(Vector(solver.eigenvalues().reverse()), a.dtype()), to_tensor(vectors, a.dtype())};
}

Tensor eigvalsh(const Tensor& a) {
  if (a.shape() == Shape{0, 0}) return Tensor::empty({0}, a.dtype());
  return to_tensor(Vector(solve(a, Eigen::EigenvaluesOnly).eigenvalues().reverse()), a.dtype());
}

}  // namespace tessera::linalg

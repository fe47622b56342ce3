#include "core/linalg/eigh.h"

#include <Eigen/Eigenvalues>

#include "core/error.h"
#include "core/linalg/eigen_matrix.h"

namespace tessera::linalg {

Eigh eigh(const Tensor& a) {
  const Matrix matrix = to_matrix(a, "eigh");
  TESSERA_CHECK(matrix.rows() == matrix.cols(), ShapeError, "eigh: matrix is ", a.shape(), "; must be square");
  if (matrix.size() == 0) return {Tensor::empty({0}, a.dtype()), Tensor::empty({0, 0}, a.dtype())};
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(matrix);
  TESSERA_CHECK(solver.info() == Eigen::Success, NumericError, "eigh: no convergence on a matrix ", a.shape());
  Matrix vectors = solver.eigenvectors().rowwise().reverse();  // the solver's order is ascending
  for (Eigen::Index i = 0; i < vectors.cols(); ++i) vectors.col(i) *= reproducible_sign(vectors.col(i));
  return {to_tensor(Vector(solver.eigenvalues().reverse()), a.dtype()), to_tensor(vectors, a.dtype())};
}

}  // namespace tessera::linalg

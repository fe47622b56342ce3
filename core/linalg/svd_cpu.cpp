#include "core/linalg/svd.h"

#include <Eigen/SVD>

#include "core/linalg/eigen_matrix.h"
#include "core/support/error.h"

namespace tessera {

using Matrix = Eigen::MatrixXd;  // column-major: half the code of the row-major solver
using linalg::reproducible_sign;
using linalg::to_matrix;
using linalg::to_tensor;
using linalg::Vector;

linalg::Svd cpu::svd_of(const Tensor& a) {
  const Matrix matrix = to_matrix(a, "svd");
  if (matrix.size() == 0) {
    return {Tensor::empty({a.dim(0), 0}, a.dtype()), Tensor::empty({0}, a.dtype()), Tensor::empty({a.dim(1), 0}, a.dtype())};
  }
  const Eigen::BDCSVD<Matrix> solver(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
  TESSERA_CHECK(solver.info() == Eigen::Success, NumericError, "svd: no convergence on a matrix ", a.shape());
  linalg::Matrix u = solver.matrixU();
  linalg::Matrix v = solver.matrixV();
  for (Eigen::Index i = 0; i < u.cols(); ++i) {
    const double sign = reproducible_sign(u.col(i));
    u.col(i) *= sign;
    v.col(i) *= sign;
  }
  return {to_tensor(u, a.dtype()), to_tensor(Vector(solver.singularValues()), a.dtype()), to_tensor(v, a.dtype())};
}

}  // namespace tessera

#include "core/linalg/qr.h"

#include <Eigen/QR>
#include <algorithm>

#include "core/linalg/eigen_matrix.h"

namespace tessera {

using linalg::Matrix;
using linalg::to_matrix;
using linalg::to_tensor;

linalg::Qr cpu::qr_of(const Tensor& a) {
  const Matrix matrix = to_matrix(a, "qr");
  const Eigen::Index k = std::min(matrix.rows(), matrix.cols());
  if (k == 0) return {Tensor::empty({a.dim(0), 0}, a.dtype()), Tensor::empty({0, a.dim(1)}, a.dtype())};
  const Eigen::HouseholderQR<Matrix> solver(matrix);
  Matrix q = solver.householderQ() * Matrix::Identity(matrix.rows(), k);
  Matrix r = solver.matrixQR().topRows(k).triangularView<Eigen::Upper>();
  for (Eigen::Index i = 0; i < k; ++i) {
    if (r(i, i) >= 0) continue;
    q.col(i) *= -1.0;
    r.row(i) *= -1.0;
  }
  return {to_tensor(q, a.dtype()), to_tensor(r, a.dtype())};
}

}  // namespace tessera

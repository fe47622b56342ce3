#include "core/linalg/eigen_matrix.h"

#include <cmath>

#include "core/linalg/check_matrix.h"
#include "core/support/error.h"

namespace tessera::linalg {

Matrix to_matrix(const Tensor& tensor, const char* operation) {
  require_cpu(tensor.device(), operation);
  check_matrix(tensor, operation);
  const Tensor wide = tensor.to(DType::f64).contiguous();
  Matrix matrix = Eigen::Map<const Matrix>(wide.data<double>(), wide.dim(0), wide.dim(1));
  TESSERA_CHECK(matrix.allFinite(), NumericError, operation, ": matrix ", tensor.shape(), " contains NaN or Inf");
  return matrix;
}

Tensor to_tensor(const Matrix& matrix, DType dtype) {
  const Tensor wide = Tensor::empty({matrix.rows(), matrix.cols()}, DType::f64);
  Eigen::Map<Matrix>(wide.data<double>(), matrix.rows(), matrix.cols()) = matrix;
  return wide.to(dtype);
}

Tensor to_tensor(const Vector& vector, DType dtype) {
  const Tensor wide = Tensor::empty({vector.size()}, DType::f64);
  Eigen::Map<Vector>(wide.data<double>(), vector.size()) = vector;
  return wide.to(dtype);
}

double reproducible_sign(const Eigen::Ref<const Vector>& column) {
  Eigen::Index largest = 0;
  for (Eigen::Index i = 1; i < column.size(); ++i) {
    if (std::abs(column[i]) > std::abs(column[largest])) largest = i;
  }
  return column.size() > 0 && column[largest] < 0 ? -1.0 : 1.0;
}

}  // namespace tessera::linalg

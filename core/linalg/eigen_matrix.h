// Bridge between Tensors and Eigen. Private to the sources of core/linalg: no other header may include it.
#pragma once

#include <Eigen/Core>

#include "core/tensor.h"

namespace tessera::linalg {

// Row-major like a contiguous Tensor. Factorisations run in double whatever the tensor's dtype.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

// A copy of a CPU tensor [m, n] in double. Throws what check_matrix throws, NumericError when an element is NaN or Inf:
// the solvers would loop or return noise.
Matrix to_matrix(const Tensor& tensor, const char* operation);
Tensor to_tensor(const Matrix& matrix, DType dtype);
Tensor to_tensor(const Vector& vector, DType dtype);

// The sign that makes the entry of largest magnitude positive; the first such entry when several tie.
double reproducible_sign(const Eigen::Ref<const Vector>& column);

}  // namespace tessera::linalg

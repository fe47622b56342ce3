#include "core/linalg/products.h"

#include "core/linalg/eigen_matrix.h"

namespace tessera::cpu {
namespace {

using linalg::Matrix;

// x is contiguous.
Eigen::Map<const linalg::Vector> as_vector(const Tensor& x) { return {x.data<double>(), x.numel()}; }

}  // namespace

Tensor multiply_f64(const Tensor& left, const Tensor& right) {
  const Matrix product = linalg::to_matrix(left, "mode_product") * linalg::to_matrix(right, "mode_product");
  return linalg::to_tensor(product, DType::f64);
}

Tensor gram_f64(const Tensor& x) {
  const Matrix matrix = linalg::to_matrix(x, "tucker");
  Matrix product = Matrix::Zero(matrix.rows(), matrix.rows());
  product.selfadjointView<Eigen::Lower>().rankUpdate(matrix);
  return linalg::to_tensor(product, DType::f64);
}

double norm_f64(const Tensor& x) {
  const Tensor values = x.contiguous();
  return as_vector(values).norm();
}

double distance_f64(const Tensor& x, const Tensor& y) {
  const Tensor left = x.contiguous();
  const Tensor right = y.contiguous();
  return (as_vector(left) - as_vector(right)).norm();
}

}  // namespace tessera::cpu

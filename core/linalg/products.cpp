#include "core/linalg/products.h"

#include "core/device/dispatch.h"
#include "core/linalg/eigen_matrix.h"
#include "core/support/error.h"

namespace tessera {
namespace cpu {
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

}  // namespace cpu

namespace linalg {

Tensor multiply_f64(const Tensor& left, const Tensor& right) {
  TESSERA_CHECK(left.device() == right.device(), DeviceError, "mode_product: devices differ: matrix is ", describe(left),
                ", unfolded tensor is ", describe(right), "; both must be equal");
  return TESSERA_BACKEND(left.device(), multiply_f64, left, right);
}

Tensor gram_f64(const Tensor& x) { return TESSERA_BACKEND(x.device(), gram_f64, x); }

double norm_f64(const Tensor& x) { return TESSERA_BACKEND(x.device(), norm_f64, x); }

double distance_f64(const Tensor& x, const Tensor& y) {
  TESSERA_CHECK(x.device() == y.device(), DeviceError, "relative_error: devices differ: approximation is ", describe(x),
                ", reference is ", describe(y), "; both must be equal");
  return TESSERA_BACKEND(x.device(), distance_f64, x, y);
}

}  // namespace linalg
}  // namespace tessera

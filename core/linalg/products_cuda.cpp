#include <cmath>

#include "core/cuda/libraries/blas.h"
#include "core/finite.h"
#include "core/linalg/products.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

// x [m, n] as a batch of one in double.
Tensor checked(const Tensor& x, const char* operation) {
  TESSERA_CHECK(all_finite(x), NumericError, operation, ": matrix ", x.shape(), " contains NaN or Inf");
  return x.to(DType::f64).contiguous().reshape({1, x.dim(0), x.dim(1)});
}

}  // namespace

Tensor multiply_f64(const Tensor& left, const Tensor& right) {
  const Tensor product = Tensor::empty({1, left.dim(0), right.dim(1)}, DType::f64, left.device());
  multiply({checked(left, "mode_product"), checked(right, "mode_product"), product}, "mode_product");
  return product.reshape({left.dim(0), right.dim(1)});
}

Tensor gram_f64(const Tensor& x) {
  const Tensor factor = checked(x, "tucker");
  const Tensor product = Tensor::empty({1, x.dim(0), x.dim(0)}, DType::f64, x.device());
  multiply({factor, factor, product, false, true}, "tucker");
  return product.reshape({x.dim(0), x.dim(0)});
}

double norm_f64(const Tensor& x) {
  const Tensor values = x.contiguous();
  const Tensor square = Tensor::empty({}, DType::f64, x.device());
  sum_product(values, values, square);
  return std::sqrt(square.item());
}

double distance_f64(const Tensor& x, const Tensor& y) {
  const Tensor difference = Tensor::empty(x.shape(), DType::f64, x.device());
  sub(x.contiguous(), y.contiguous(), difference);
  return norm_f64(difference);
}

}  // namespace tessera::cuda

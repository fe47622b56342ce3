#include "core/linalg/products.h"

#include "core/device/dispatch.h"
#include "core/support/error.h"

namespace tessera::linalg {

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

}  // namespace tessera::linalg

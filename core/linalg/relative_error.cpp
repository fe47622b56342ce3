#include "core/linalg/relative_error.h"

#include <limits>

#include "core/linalg/products.h"
#include "core/support/error.h"

namespace tessera::linalg {

double norm(const Tensor& x) { return norm_f64(x.to(DType::f64)); }

double distance(const Tensor& x, const Tensor& y) {
  TESSERA_CHECK(x.shape() == y.shape(), ShapeError, "distance: shapes are ", x.shape(), " and ", y.shape(), "; they must be equal");
  return distance_f64(x.to(DType::f64), y.to(DType::f64));
}

double relative_error(const Tensor& approximation, const Tensor& reference) {
  TESSERA_CHECK(approximation.shape() == reference.shape(), ShapeError, "relative_error: approximation is ",
                approximation.shape(), ", reference is ", reference.shape(), "; shapes must be equal");
  const Tensor wide = reference.to(DType::f64);
  const double difference = distance(approximation, wide);
  if (difference == 0) return 0;
  const double whole = norm(wide);
  return whole > 0 ? difference / whole : std::numeric_limits<double>::infinity();
}

}  // namespace tessera::linalg

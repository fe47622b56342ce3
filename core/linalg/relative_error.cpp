#include "core/linalg/relative_error.h"

#include <limits>

#include "core/linalg/products.h"
#include "core/support/error.h"

namespace tessera::linalg {

double relative_error(const Tensor& approximation, const Tensor& reference) {
  TESSERA_CHECK(approximation.shape() == reference.shape(), ShapeError, "relative_error: approximation is ",
                approximation.shape(), ", reference is ", reference.shape(), "; shapes must be equal");
  const Tensor wide = reference.to(DType::f64);
  const double difference = distance_f64(approximation.to(DType::f64), wide);
  if (difference == 0) return 0;
  const double whole = norm_f64(wide);
  return whole > 0 ? difference / whole : std::numeric_limits<double>::infinity();
}

}  // namespace tessera::linalg

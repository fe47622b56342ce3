#include "core/linalg/svd.h"

#include "core/device/dispatch.h"
#include "core/linalg/check_matrix.h"

namespace tessera::linalg {

Svd svd(const Tensor& a) {
  check_matrix(a, "svd");
  return TESSERA_BACKEND(a.device(), svd_of, a);
}

}  // namespace tessera::linalg

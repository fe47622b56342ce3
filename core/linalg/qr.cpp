#include "core/linalg/qr.h"

#include "core/device/dispatch.h"
#include "core/linalg/check_matrix.h"

namespace tessera::linalg {

Qr qr(const Tensor& a) {
  check_matrix(a, "qr");
  return TESSERA_BACKEND(a.device(), qr_of, a);
}

}  // namespace tessera::linalg

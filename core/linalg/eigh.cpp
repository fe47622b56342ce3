#include "core/linalg/eigh.h"

#include "core/device/dispatch.h"
#include "core/linalg/check_matrix.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

void check_square(const Tensor& a) {
  check_matrix(a, "eigh");
  TESSERA_CHECK(a.dim(0) == a.dim(1), ShapeError, "eigh: matrix is ", a.shape(), "; must be square");
}

}  // namespace

Eigh eigh(const Tensor& a) {
  check_square(a);
  return TESSERA_BACKEND(a.device(), eigh_of, a, true);
}

Tensor eigvalsh(const Tensor& a) {
  check_square(a);
  return TESSERA_BACKEND(a.device(), eigh_of, a, false).values;
}

}  // namespace tessera::linalg

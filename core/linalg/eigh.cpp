#include "core/linalg/eigh.h"

#include "core/device/dispatch.h"
#include "core/linalg/check_matrix.h"
#include "core/storage.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

void check(const Tensor& a) {
  check_matrix(a, "eigh");
  TESSERA_CHECK(a.dim(0) == a.dim(1), ShapeError, "eigh: matrix is ", a.shape(), "; must be square");
  // In doubles: the matrix, the solver's copy and the vectors.
  const auto n = static_cast<std::size_t>(a.dim(0));
  check_memory_limit(a.device(), 3 * sizeof(double) * n * n, str("eigendecomposition of ", a.shape()));
}

}  // namespace

Eigh eigh(const Tensor& a) {
  check(a);
  return TESSERA_BACKEND(a.device(), eigh_of, a, true);
}

Tensor eigvalsh(const Tensor& a) {
  check(a);
  return TESSERA_BACKEND(a.device(), eigh_of, a, false).values;
}

}  // namespace tessera::linalg

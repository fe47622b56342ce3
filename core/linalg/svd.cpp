#include "core/linalg/svd.h"

#include <algorithm>

#include "core/device/dispatch.h"
#include "core/linalg/check_matrix.h"
#include "core/storage.h"
#include "core/support/error.h"

namespace tessera::linalg {

Svd svd(const Tensor& a) {
  check_matrix(a, "svd");
  // In doubles: the matrix twice, the vectors in the solver and as returned, and the workspace of the divide-and-conquer solver.
  const auto m = static_cast<std::size_t>(a.dim(0)), n = static_cast<std::size_t>(a.dim(1)), k = std::min(m, n);
  check_memory_limit(a.device(), sizeof(double) * (2 * m * n + 2 * (m + n) * k + 4 * k * k), str("svd of ", a.shape()));
  return TESSERA_BACKEND(a.device(), svd_of, a);
}

}  // namespace tessera::linalg

#include "core/linalg/randomised_svd.h"

#include <algorithm>

#include "core/finite.h"
#include "core/linalg/check_matrix.h"
#include "core/linalg/qr.h"
#include "core/ops/matmul.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

Tensor multiply(const Tensor& a, const Tensor& b, const MatmulOptions& options = {}) {
  const NoGrad no_grad;
  return matmul(Var(a), Var(b), options).value();
}

Tensor orthonormal(const Tensor& columns) { return qr(columns).q; }

}  // namespace

Svd randomised_svd(const Tensor& a, std::int64_t rank, const RandomisedOptions& options) {
  check_matrix(a, "randomised_svd");
  const std::int64_t smaller = std::min(a.dim(0), a.dim(1));
  TESSERA_CHECK(rank >= 1 && rank <= smaller, ShapeError, "randomised_svd: rank is ", rank, ", the matrix is ", a.shape(),
                "; legal range is 1..", smaller);
  TESSERA_CHECK(options.oversampling >= 0 && options.power_iterations >= 0, ShapeError, "randomised_svd: oversampling is ",
                options.oversampling, ", power_iterations is ", options.power_iterations, "; needs 0 or more of both");
  TESSERA_CHECK(all_finite(a), NumericError, "randomised_svd: matrix ", a.shape(), " contains NaN or Inf");
  const Tensor matrix = a.contiguous();
  const std::int64_t columns = std::min(rank + options.oversampling, smaller);
  const Tensor sketch = Tensor::empty({a.dim(1), columns}, a.dtype());
  fill_normal(sketch, RngStream(options.seed, "randomised_svd", "sketch"), 0, 1);

  Tensor q = orthonormal(multiply(matrix, sketch.to(a.device())));
  for (std::int64_t i = 0; i < options.power_iterations; ++i) {
    q = orthonormal(multiply(matrix, q, {.transpose_a = true}));
    q = orthonormal(multiply(matrix, q));
  }
  const Svd small = svd(multiply(q, matrix, {.transpose_a = true}));
  return {.u = multiply(q, small.u.slice(1, 0, rank).contiguous()),
          .s = small.s.slice(0, 0, rank).contiguous(),
          .v = small.v.slice(1, 0, rank).contiguous()};
}

}  // namespace tessera::linalg

#include "core/cuda/libraries/blas.h"
#include "core/ops/matmul.h"

namespace tessera::cuda {

void matmul(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  const DType factors = is_half(a.dtype()) ? a.dtype() : b.dtype();
  const Tensor left = a.to(factors);  // a itself if it has the dtype
  const Tensor right = b.to(factors);
  if (is_half(y.dtype()) && factors != y.dtype()) {
    const Tensor wide = Tensor::empty(y.shape(), DType::f32, y.device());
    multiply({left, right, wide, options.transpose_a, options.transpose_b}, "matmul");
    return y.copy_from(wide);
  }
  multiply({left, right, y, options.transpose_a, options.transpose_b}, "matmul");
}

}  // namespace tessera::cuda

#include "core/cuda/libraries/product_weights.h"
#include "core/ops/product_weight.h"

namespace tessera::cuda {

Tensor product_weight(const Tensor& weight, DType dtype) { return rounded_weight(weight, dtype); }

}  // namespace tessera::cuda

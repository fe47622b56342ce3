#include "core/cuda/libraries/blas.h"
#include "core/ops/strided_matmul.h"

namespace tessera::cuda {

void strided_matmul(const StridedProduct& product, const StridedOperands& operands) {
  multiply(product, operands, "strided_matmul");
}

}  // namespace tessera::cuda

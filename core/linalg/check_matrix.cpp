#include "core/linalg/check_matrix.h"

#include "core/support/error.h"

namespace tessera::linalg {

void check_matrix(const Tensor& tensor, const char* operation) {
  TESSERA_CHECK(tensor.rank() == 2, ShapeError, operation, ": matrix is ", tensor.shape(), "; needs 2 dimensions");
  TESSERA_CHECK(tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64, DTypeError, operation, ": dtype is ",
                name_of(tensor.dtype()), "; needs f32 or f64");
}

}  // namespace tessera::linalg

#include "core/linalg/mode_product.h"

#include "core/error.h"
#include "core/linalg/eigen_matrix.h"
#include "core/linalg/unfold.h"

namespace tessera::linalg {

Tensor mode_product(const Tensor& tensor, const Tensor& matrix, int mode) {
  mode = normalize_axis(mode, tensor.rank(), "mode_product");
  const Matrix left = to_matrix(matrix, "mode_product");
  TESSERA_CHECK(left.cols() == tensor.dim(mode), ShapeError, "mode_product: matrix is ", matrix.shape(), ", tensor is ",
                tensor.shape(), "; its ", matrix.dim(1), " columns must equal size ", tensor.dim(mode), " of mode ", mode);
  const Matrix product = left * to_matrix(unfold(tensor, mode), "mode_product");
  Shape shape = tensor.shape();
  shape.set(mode, left.rows());
  return fold(to_tensor(product, tensor.dtype()), mode, shape);
}

}  // namespace tessera::linalg

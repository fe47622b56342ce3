#include "core/linalg/mode_product.h"

#include "core/linalg/check_matrix.h"
#include "core/linalg/products.h"
#include "core/linalg/unfold.h"
#include "core/support/error.h"

namespace tessera::linalg {

Tensor mode_product(const Tensor& tensor, const Tensor& matrix, int mode) {
  mode = normalize_axis(mode, tensor.rank(), "mode_product");
  check_matrix(matrix, "mode_product");
  TESSERA_CHECK(matrix.dim(1) == tensor.dim(mode), ShapeError, "mode_product: matrix is ", matrix.shape(), ", tensor is ",
                tensor.shape(), "; its ", matrix.dim(1), " columns must equal size ", tensor.dim(mode), " of mode ", mode);
  const Tensor unfolded = unfold(tensor, mode);
  check_matrix(unfolded, "mode_product");
  const Tensor product = multiply_f64(matrix, unfolded);
  Shape shape = tensor.shape();
  shape.set(mode, matrix.dim(0));
  return fold(product.to(tensor.dtype()), mode, shape);
}

}  // namespace tessera::linalg

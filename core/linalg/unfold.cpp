#include "core/linalg/unfold.h"

#include <vector>

#include "core/support/error.h"

namespace tessera::linalg {
namespace {

std::vector<int> mode_first(int mode, int rank) {
  std::vector<int> axes{mode};
  for (int axis = 0; axis < rank; ++axis) {
    if (axis != mode) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

Tensor unfold(const Tensor& tensor, int mode) {
  mode = normalize_axis(mode, tensor.rank(), "unfold");
  const Shape rest = tensor.shape().erase(mode);
  return tensor.permute(mode_first(mode, tensor.rank())).reshape({tensor.dim(mode), rest.numel()});
}

Tensor fold(const Tensor& matrix, int mode, const Shape& shape) {
  mode = normalize_axis(mode, shape.rank(), "fold");
  const Shape rest = shape.erase(mode);
  const Shape expected{shape[mode], rest.numel()};
  TESSERA_CHECK(matrix.shape() == expected, ShapeError, "fold: matrix is ", matrix.shape(), "; mode ", mode, " of ", shape,
                " unfolds to ", expected);
  const std::vector<int> axes = mode_first(mode, shape.rank());
  Shape permuted = shape;
  std::vector<int> inverse(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    permuted.set(static_cast<int>(i), shape[axes[i]]);
    inverse[static_cast<std::size_t>(axes[i])] = static_cast<int>(i);
  }
  return matrix.reshape(permuted).permute(inverse).contiguous();
}

}  // namespace tessera::linalg

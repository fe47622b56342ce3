// The check that the decompositions share.
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

// Throws ShapeError unless a tensor has two dimensions, DTypeError unless it is f32 or f64.
void check_matrix(const Tensor& tensor, const char* operation);

}  // namespace tessera::linalg

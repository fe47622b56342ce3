// How long a tensor is, and how far from another: Frobenius norms in double. From a GPU they are read back.
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

double norm(const Tensor& x);
double distance(const Tensor& x, const Tensor& y);  // ||x - y||; throws ShapeError

// ||approximation - reference||_F / ||reference||_F in double; 0 when both are zero, infinity when only the reference is.
double relative_error(const Tensor& approximation, const Tensor& reference);

}  // namespace tessera::linalg

// How far a tensor is from another.
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

// ||approximation - reference||_F / ||reference||_F in double; 0 when both are zero, infinity when only the reference is.
double relative_error(const Tensor& approximation, const Tensor& reference);

}  // namespace tessera::linalg

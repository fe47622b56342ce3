// The same numbers in another floating dtype.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// y = x rounded to `dtype`, or x itself where it has it. Saves x's dtype; grad_x = grad_y in that dtype. Throws DTypeError unless
// x and `dtype` are floating.
Var cast(const Var& x, DType dtype);

}  // namespace tessera

// Joining tensors along an axis.
#pragma once

#include <span>

#include "core/autograd/var.h"

namespace tessera {

// inputs [..., n_i, ...] equal but for `axis` -> [..., sum n_i, ...]. Saves sizes only; each gradient is a view of grad_y.
// At most 64 inputs. Throws ShapeError without inputs or when other axes differ, DTypeError or DeviceError when operands differ.
Var concat(std::span<const Var> inputs, int axis);
inline Var concat(std::initializer_list<Var> inputs, int axis) { return concat(std::span(inputs.begin(), inputs.size()), axis); }

}  // namespace tessera

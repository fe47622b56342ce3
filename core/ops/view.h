// Other shapes of the same elements.
#pragma once

#include <initializer_list>
#include <span>

#include "core/autograd/var.h"

namespace tessera {

// The result shares x's bytes wherever strides can express it; gradients are views likewise. Nothing is saved but shapes.
// Any floating dtype. Throws ShapeError on sizes or axes that do not fit.
Var reshape(const Var& x, const Shape& shape);             // copies when x's strides require it
Var permute(const Var& x, std::span<const int> axes);      // y's axis i is x's axis axes[i]
Var flatten(const Var& x);                                 // [n, ...] -> [n, rest]
// Elements begin..end-1 along an axis; the gradient is zero outside.
Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end);

inline Var permute(const Var& x, std::initializer_list<int> axes) { return permute(x, std::span(axes.begin(), axes.size())); }

}  // namespace tessera

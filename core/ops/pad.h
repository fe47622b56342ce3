// Padding with a constant.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "core/autograd/var.h"

namespace tessera {

// y's axis i has padding[i].first elements of `value` before x's and padding[i].second after. Saves sizes only; grad_x is a view
// of grad_y. Throws ShapeError unless there is one pair of non-negative sizes per axis, DTypeError unless f32, f64 or bf16.
Var pad(const Var& x, std::span<const std::pair<std::int64_t, std::int64_t>> padding, double value = 0.0);

}  // namespace tessera

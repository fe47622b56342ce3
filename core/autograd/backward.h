// The reverse sweep: the only place where gradients are accumulated.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// Fills grad() of every leaf that y depends on and that requires one. `grad_y` defaults to ones, which needs a y of one element.
// Visits nodes by descending creation number with an explicit stack; releases each op, its inputs and its gradient as soon
// as it is visited, so a graph can be swept once: a second backward throws InternalError naming the op.
// Recording is off inside; an Op may turn it on and sweep a graph of its own (recompute).
void backward(const Var& y, const Tensor& grad_y = {});

}  // namespace tessera

// The reverse sweep: the only place where gradients are accumulated.
#pragma once

#include <functional>

#include "core/autograd/var.h"

namespace tessera {

// Told of a leaf whose gradient is complete: the sweep will not touch it any more.
using LeafDone = std::function<void(const Node& leaf)>;

// Fills grad() of every leaf that y depends on and that requires one. `grad_y` defaults to ones, which needs a y of one element.
// Visits nodes by descending creation number with an explicit stack; releases each op, its inputs and its gradient as soon
// as it is visited, so a graph can be swept once: a second backward throws InternalError naming the op.
// Recording is off inside; an Op may turn it on and sweep a graph of its own (recompute).
// `done` is called at most once for each of these leaves, as soon as no op is left that reads it: mostly while the sweep goes on,
// the last layer's leaves first. For a leaf that is also read where no gradient arrives it is called at the end; for one whose
// gradient comes from a sweep inside (recompute), not at all. The order is that of the graph, so that it is the same wherever
// the same graph was recorded. Gradients have the same bytes with and without it.
void backward(const Var& y, const Tensor& grad_y = {}, const LeafDone& done = {});

}  // namespace tessera

// Gradients of what a network is trained for, for scores that weigh weights by them.
#pragma once

#include <cstdint>
#include <functional>

namespace tessera {

// Calls `each` for `count` training batches, from number `first` on, with the gradient of the batch's mean loss in the
// parameters, at the weights as they are. Afterwards there are no gradients, and nothing else has changed. Batches of the same
// numbers are the same in every call. In f16 a batch whose gradients overflow at every scale of the loss is passed over.
using LossGradients = std::function<void(std::int64_t first, std::int64_t count, const std::function<void()>& each)>;

}  // namespace tessera

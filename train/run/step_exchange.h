// What the ranks of a data-parallel step tell each other. Each has computed its share of the batch; behind the exchange all hold
// the same gradients, statistics and losses, and do the rest of the step alike.
#pragma once

#include <span>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/module.h"

namespace tessera {

// Gradients, summed in the order of ranks; in reverse order of creation, which is about that in which backward makes them.
void sum_gradients(Communicator& ranks, std::span<const NamedParameter> parameters);

// Floating-point buffers, the running statistics of batch norms, become their mean over the ranks, whose batches were shares.
// Masks and other buffers of whole numbers are the same on all ranks.
void average_statistics(Communicator& ranks, std::span<const NamedBuffer> buffers);

// Of the micro-batches of every rank, in the order of ranks: f64 scalars.
std::vector<Tensor> all_losses(Communicator& ranks, std::span<const Tensor> mine);

}  // namespace tessera

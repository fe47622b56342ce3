// What the ranks of a data-parallel step tell each other. Each has computed its share of the batch. After the exchange all hold
// the same gradients, statistics and losses, and do the rest of the step alike.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/autograd/backward.h"
#include "core/comm/background_sums.h"
#include "core/comm/communicator.h"
#include "core/nn/module.h"
#include "optim/power_sgd.h"

namespace tessera {

// Gradients become their sums in the order of ranks, while backward goes on. Those that PowerSGD takes are summed afterwards.
class GradientExchange {
 public:
  // Collective. What it is given outlives it.
  GradientExchange(Communicator& ranks, std::span<const NamedParameter> parameters, std::unique_ptr<PowerSgd> power = {});

  // For the last sweep that adds to a step's gradients: each is sent as soon as it is complete.
  LeafDone send();
  // Sends the gradients that no sweep has sent, and waits for the sums.
  void finish();
  PowerSgd* power() const noexcept { return power_.get(); }  // null without it

 private:
  bool takes(std::size_t parameter) const { return !power_ || !power_->takes(parameter); }

  std::span<const NamedParameter> parameters_;
  std::unique_ptr<PowerSgd> power_;
  std::unordered_map<const Node*, std::size_t> index_;  // of parameters that PowerSGD does not take
  std::vector<bool> sent_;
  BackgroundSums sums_;
};

// Floating-point buffers, the running statistics of batch norms, become their mean over the ranks, whose batches were shares.
// Masks and other buffers of whole numbers are the same on all ranks.
void average_statistics(Communicator& ranks, std::span<const NamedBuffer> buffers);

// The losses of all ranks' micro-batches, in the order of ranks: f64 scalars on the CPU.
std::vector<Tensor> all_losses(Communicator& ranks, std::span<const Tensor> mine);

}  // namespace tessera

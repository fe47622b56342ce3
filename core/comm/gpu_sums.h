// Sums over ranks of tensors on their GPUs, without the way through the hosts.
#pragma once

#include <functional>
#include <memory>

#include "core/comm/communicator.h"

namespace tessera {

class GpuSums {
 public:
  virtual ~GpuSums() = default;
  // Memory for a sum of these values. Called by this rank alone, before the ranks agree to take the sum: no rank may wait on a
  // GPU for one that has no memory.
  virtual Tensor scratch_for(const Tensor& values) const = 0;
  // As Communicator::all_reduce() of values on this rank's GPU, to the same bytes; queued on its stream. Collective: ranks give
  // as many values of one type; the caller makes sure of that.
  virtual void all_reduce(const Tensor& values, const Tensor& scratch) = 0;
};

// Collective; `ranks` outlives what it gives. Null on every rank where they cannot: sums then go through the hosts.
using MakeGpuSums = std::function<std::unique_ptr<GpuSums>(Communicator& ranks, Device gpu)>;

}  // namespace tessera

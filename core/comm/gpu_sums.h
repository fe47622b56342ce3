// Sums over ranks of tensors on their GPUs, without the way through the hosts.
#pragma once

#include <functional>
#include <memory>

#include "core/comm/communicator.h"

namespace tessera {

class GpuSums {
 public:
  virtual ~GpuSums() = default;
  // As Communicator::all_reduce() of values on this rank's GPU, to the same bytes; queued behind the work there. Collective:
  // ranks give as many values of one type, of which the caller makes sure.
  virtual void all_reduce(const Tensor& values) = 0;
};

// Collective; `ranks` outlives what it gives. Null on every rank where they cannot: sums then go through the hosts.
using MakeGpuSums = std::function<std::unique_ptr<GpuSums>(Communicator& ranks, Device gpu)>;

}  // namespace tessera

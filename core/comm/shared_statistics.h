// Says that batch norms take their statistics over several ranks (layers/batch_norm.h).
#pragma once

#include "core/comm/communicator.h"

namespace tessera {

// While one lives, what trains on this thread does the same on all of `ranks`, each on a batch of as many rows, and a batch norm
// normalises by the statistics of these batches together. The newest scope of a thread counts.
class SharedStatistics {
 public:
  explicit SharedStatistics(Communicator& ranks);
  ~SharedStatistics();
  SharedStatistics(const SharedStatistics&) = delete;
  SharedStatistics& operator=(const SharedStatistics&) = delete;

  static Communicator* current() noexcept;  // null outside of every scope

 private:
  Communicator* outer_;
};

}  // namespace tessera

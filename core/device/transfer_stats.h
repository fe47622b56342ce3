// Counts what crosses between host and devices, and how often the host waited for a device. A training step must do neither
// towards the host: tests compare two readings.
#pragma once

#include <cstdint>

namespace tessera {

struct TransferStats {
  std::int64_t host_to_device = 0;  // copies
  std::int64_t device_to_host = 0;
  std::int64_t synchronizations = 0;
  friend bool operator==(const TransferStats&, const TransferStats&) = default;
};

// Counts since the start of the process.
TransferStats transfer_stats() noexcept;

// Called by whoever copies or waits, once for each.
enum class Transfer { host_to_device, device_to_host, synchronization };
void count_transfer(Transfer transfer) noexcept;

}  // namespace tessera

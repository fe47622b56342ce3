#include "core/device/transfer_stats.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace tessera {
namespace {

constinit std::array<std::atomic<std::int64_t>, 3> counts{};

std::int64_t count_of(Transfer transfer) noexcept { return counts[static_cast<std::size_t>(transfer)].load(); }

}  // namespace

TransferStats transfer_stats() noexcept {
  return {count_of(Transfer::host_to_device), count_of(Transfer::device_to_host), count_of(Transfer::synchronization)};
}

void count_transfer(Transfer transfer) noexcept { ++counts[static_cast<std::size_t>(transfer)]; }

}  // namespace tessera

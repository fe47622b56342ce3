// What a piece of work does to a device's memory over time: bytes in use after each allocation.
#pragma once

#include <cstddef>
#include <vector>

#include "core/device/device.h"

namespace tessera {

// Records from construction to destruction; one at a time on a device. Work of equal structure and another batch size makes the
// same allocations in the same order, each of a size that is linear in the batch: two histories give a third by extrapolation.
class MemoryHistory {
 public:
  explicit MemoryHistory(Device device);  // throws DeviceError on a device that does not exist
  ~MemoryHistory();
  MemoryHistory(const MemoryHistory&) = delete;
  MemoryHistory& operator=(const MemoryHistory&) = delete;

  const std::vector<std::size_t>& in_use() const noexcept { return in_use_; }

 private:
  Device device_;
  std::vector<std::size_t> in_use_;
};

}  // namespace tessera

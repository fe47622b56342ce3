// Reference-counted bytes on one device, taken from that device's caching allocator and returned to it, or lent by somebody else.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "core/device/device.h"

namespace tessera {

class Storage {
 public:
  // Uninitialised bytes, 64-byte aligned. Throws OutOfMemoryError naming the bytes asked and in use.
  Storage(std::size_t bytes, Device device);
  // Host memory of somebody else, who keeps it for as long as the storage lives. It is not counted, and not released.
  Storage(void* lent, std::size_t bytes) noexcept : data_(lent), bytes_(bytes), lent_(true) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }

 private:
  void* data_;
  std::size_t bytes_;
  Device device_;
  bool lent_ = false;
};

using StoragePtr = std::shared_ptr<Storage>;

// Bytes in live storages, bytes kept for reuse (but for those whose pages the system has back), the highest in_use, the limit.
struct MemoryStats {
  std::size_t in_use = 0;
  std::size_t cached = 0;
  std::size_t peak = 0;
  std::size_t limit = 0;
};
MemoryStats memory_stats(Device device);
void reset_peak_memory(Device device);

// An upper bound on in_use + cached; 0 removes it. At first it is the memory that the machine or the process's control group has:
// the system hands out more than there is and later kills whoever uses it.
void set_memory_limit(Device device, std::size_t bytes);

// Throws OutOfMemoryError unless `bytes` beside those in use are within the limit: called before a library takes memory by
// itself. `what` names the work: "svd of [4096, 4096]".
void check_memory_limit(Device device, std::size_t bytes, std::string_view what);

}  // namespace tessera

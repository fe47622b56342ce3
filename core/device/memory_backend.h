// What storages, their statistics and MemoryHistory ask of a device's allocator; see core/storage.h.
#pragma once

#include <cstddef>
#include <vector>

#include "core/device/device.h"
#include "core/storage.h"

namespace tessera {

// record_in_use appends in_use after every later allocation to `in_use`, until another call; null ends it.
namespace cpu {
void* take_storage(std::size_t bytes, Device device);
void release_storage(void* block, std::size_t bytes, Device device) noexcept;
MemoryStats storage_stats(Device device);
void reset_storage_peak(Device device);
void limit_storage(std::size_t bytes, Device device);
void record_in_use(std::vector<std::size_t>* in_use, Device device);
}  // namespace cpu
namespace cuda {
void* take_storage(std::size_t bytes, Device device);
void release_storage(void* block, std::size_t bytes, Device device) noexcept;
MemoryStats storage_stats(Device device);
void reset_storage_peak(Device device);
void limit_storage(std::size_t bytes, Device device);
void record_in_use(std::vector<std::size_t>* in_use, Device device);
}  // namespace cuda

}  // namespace tessera

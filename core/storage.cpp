#include "core/storage.h"

#include "core/device/dispatch.h"
#include "core/device/memory_backend.h"
#include "core/support/error.h"

namespace tessera {

Storage::Storage(std::size_t bytes, Device device)
    : data_(TESSERA_BACKEND(device, take_storage, bytes, device)), bytes_(bytes), device_(device) {}

Storage::~Storage() {
  if (!lent_) TESSERA_BACKEND(device_, release_storage, data_, bytes_, device_);
}

MemoryStats memory_stats(Device device) { return TESSERA_BACKEND(device, storage_stats, device); }

void reset_peak_memory(Device device) { TESSERA_BACKEND(device, reset_storage_peak, device); }

void set_memory_limit(Device device, std::size_t bytes) { TESSERA_BACKEND(device, limit_storage, bytes, device); }

void check_memory_limit(Device device, std::size_t bytes, std::string_view what) {
  const MemoryStats stats = memory_stats(device);
  if (stats.limit == 0 || stats.in_use + bytes <= stats.limit) return;
  throw OutOfMemoryError::at_limit(
      str(what, " needs ", bytes, " bytes, ", stats.in_use, " bytes of ", device, " are in use, limit ", stats.limit, " bytes"));
}

}  // namespace tessera

#include "core/device/memory_history.h"

#include "core/device/dispatch.h"
#include "core/device/memory_backend.h"

namespace tessera {

MemoryHistory::MemoryHistory(Device device) : device_(device) { TESSERA_BACKEND(device_, record_in_use, &in_use_, device_); }

MemoryHistory::~MemoryHistory() { TESSERA_BACKEND(device_, record_in_use, nullptr, device_); }

}  // namespace tessera

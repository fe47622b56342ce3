#include "core/memory_history.h"

#include "core/cpu/allocator.h"

namespace tessera {

MemoryHistory::MemoryHistory(Device device) {
  require_cpu(device, "memory_history");
  cpu::allocator().record(&in_use_);
}

MemoryHistory::~MemoryHistory() { cpu::allocator().record(nullptr); }

}  // namespace tessera

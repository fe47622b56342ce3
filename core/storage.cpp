#include "core/storage.h"

#include "core/cpu/allocator.h"
#include "core/error.h"

namespace tessera {

Storage::Storage(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {
  require_cpu(device, "storage");
  data_ = cpu::allocator().allocate(bytes);
}

Storage::~Storage() { cpu::allocator().release(data_, bytes_); }

MemoryStats memory_stats(Device device) {
  require_cpu(device, "memory_stats");
  return cpu::allocator().stats();
}

void reset_peak_memory(Device device) {
  require_cpu(device, "reset_peak_memory");
  cpu::allocator().reset_peak();
}

void set_memory_limit(Device device, std::size_t bytes) {
  require_cpu(device, "set_memory_limit");
  cpu::allocator().set_limit(bytes);
}

}  // namespace tessera

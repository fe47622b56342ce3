#include "core/device/memory_backend.h"

#include "core/cpu/allocator.h"

namespace tessera::cpu {

void* take_storage(std::size_t bytes, Device) { return allocator().allocate(bytes); }
void release_storage(void* block, std::size_t bytes, Device) noexcept { allocator().release(block, bytes); }
MemoryStats storage_stats(Device) { return allocator().stats(); }
void reset_storage_peak(Device) { allocator().reset_peak(); }
void limit_storage(std::size_t bytes, Device) { allocator().set_limit(bytes); }
void record_in_use(std::vector<std::size_t>* in_use, Device) { allocator().record(in_use); }

}  // namespace tessera::cpu

// A few bytes may ask for any amount of memory, which the allocator refuses; less of it is refused sooner.
#pragma once

#include <cstddef>

#include "core/storage.h"

namespace tessera::fuzz {

class MemoryLimit {
 public:
  MemoryLimit() : before_(memory_stats(Device::cpu()).limit) {
    set_memory_limit(Device::cpu(), memory_stats(Device::cpu()).in_use + kMost);
  }
  ~MemoryLimit() { set_memory_limit(Device::cpu(), before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  static constexpr std::size_t kMost = 64 << 20;
  std::size_t before_;
};

}  // namespace tessera::fuzz

#include "core/cpu/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace tessera::cpu {

std::size_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  std::size_t bytes = pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : 0;
  // Inside a container, the files of the container's cgroup are at the root of its own mount.
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::size_t limit = 0;
    if (std::ifstream(path) >> limit && limit > 0) bytes = bytes == 0 ? limit : std::min(bytes, limit);  // "max": no number
  }
  return bytes;
}

std::size_t peak_resident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

std::size_t last_cache() {
  std::size_t kilobytes = 0;
  for (const char* index : {"index3", "index2"}) {
    if (std::ifstream(std::string("/sys/devices/system/cpu/cpu0/cache/") + index + "/size") >> kilobytes) return kilobytes * 1024;
  }
  return static_cast<std::size_t>(std::max(::sysconf(_SC_LEVEL3_CACHE_SIZE), 0L));
}

std::size_t bytes_beyond_caches(std::size_t least, std::size_t most) {
  constexpr std::size_t kShareOfMemory = 16;
  const std::size_t bytes = std::clamp(2 * last_cache(), least, most), memory = machine_memory();
  return memory == 0 ? bytes : std::min(bytes, memory / kShareOfMemory);
}

bool exceeds_caches(std::int64_t bytes) {
  constexpr std::size_t kLeastCache = std::size_t{8} << 20;
  static const auto cache = static_cast<std::int64_t>(std::max(last_cache(), kLeastCache));
  return bytes > cache;
}

}  // namespace tessera::cpu

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
  // Inside a container the group's files are at the root of its own mount.
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

}  // namespace tessera::cpu

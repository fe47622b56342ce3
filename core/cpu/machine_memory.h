// How much memory this process may use.
#pragma once

#include <cstddef>

namespace tessera::cpu {

// The smaller of the machine's memory and its control group's limit (cgroup v2, memory.max; v1, memory.limit_in_bytes), in
// bytes; 0 when neither can be read.
std::size_t machine_memory();

}  // namespace tessera::cpu

// How much memory this process may use, and how much of it a cache holds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

// The smaller of the machine's memory and its control group's limit (cgroup v2, memory.max; v1, memory.limit_in_bytes), in
// bytes; 0 when neither can be read.
std::size_t machine_memory();

// The most bytes that this process has held in memory at once (VmHWM); 0 when the system does not tell. A child's do not count,
// and neither does, as in getrusage, what the process held before it became this program.
std::size_t peak_resident();

// Bytes of the last cache that a core reaches; 0 when the system does not tell. sysconf() is asked only where there is no sysfs:
// on AMD's processors glibc before 2.37 gives the sum of all such caches of a socket, and a core reaches one of them.
std::size_t last_cache();

// Bytes whose walk leaves nothing else in the last cache: twice as many as it holds, `least` to `most`, at most a sixteenth
// of the machine's memory.
std::size_t bytes_beyond_caches(std::size_t least, std::size_t most);

// Whether so many bytes are more than the last cache holds, and more than 8 MiB: the system may not tell its caches.
bool exceeds_caches(std::int64_t bytes);

}  // namespace tessera::cpu

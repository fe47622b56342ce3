// How many threads may compute.
#pragma once

#include <cstdint>

namespace tessera {

inline constexpr std::int64_t kMostComputeThreads = 1024;  // of threads.compute and the options in its place

}  // namespace tessera

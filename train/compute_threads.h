// How many threads may compute.
#pragma once

#include <cstdint>

namespace tessera {

inline constexpr std::int64_t kMostComputeThreads = 1024;  // the limit of threads.compute and of the options that replace it

}  // namespace tessera

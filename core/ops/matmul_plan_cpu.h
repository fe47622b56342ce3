// What is known of how matrix products run on the CPU. Included by matmul_cpu.cpp and tests of the algorithms only.
#pragma once

#include <cstddef>
#include <string>

namespace tessera::cpu {

// How often this thread ran `algorithm`, "matmul" or "sgemm" of oneDNN or our "panels": shows that a forced choice was obeyed.
std::size_t matmul_runs(const std::string& algorithm);

}  // namespace tessera::cpu

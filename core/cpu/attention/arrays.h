// Small loops over floats, built anew by each file that includes this. They replace the standard library's functions: an
// instance of those, built for these instructions, could be linked in for all code.
#pragma once

#include <cstdint>

namespace tessera::cpu::attention {
namespace {

inline std::int64_t lesser(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t greater(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
inline void fill(float* values, std::int64_t count, float value) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = value;
}
inline void multiply_all(const float* factors, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factors[i];
}

}  // namespace
}  // namespace tessera::cpu::attention

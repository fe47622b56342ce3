#include "core/cpu/cache_sweep.h"

#include <omp.h>

#include <algorithm>

#include "core/cpu/machine_memory.h"

namespace tessera::cpu {
namespace {

constexpr std::size_t kLeastBytes = std::size_t{16} << 20;  // the system may not know its caches
constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr std::size_t kLineFloats = 16;

}  // namespace

// Written, since pages that nobody wrote may all be the same one.
CacheSweep::CacheSweep() : other_(std::clamp(2 * last_cache(), kLeastBytes, kMostBytes) / sizeof(float), 1.0F) {}

void CacheSweep::operator()() const {
#pragma omp parallel
  {
    float sum = 0;
    for (std::size_t i = 0; i < other_.size(); i += kLineFloats) sum += other_[i];
    asm volatile("" : : "x"(sum));  // the sum is used, as far as the compiler knows
  }
}

}  // namespace tessera::cpu

#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/machine_memory.h"
#include "core/cpu/rows/problem.h"

namespace tessera::cpu::rows {
namespace {

constexpr std::size_t kLeastCache = std::size_t{8} << 20;  // the system may not know its caches

std::int64_t last_cache_bytes() {
  static const auto bytes = static_cast<std::int64_t>(std::max(last_cache(), kLeastCache));
  return bytes;
}

}  // namespace

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

Stores stores_for(std::int64_t bytes) { return bytes > last_cache_bytes() ? Stores::past_caches : Stores::cached; }

}  // namespace tessera::cpu::rows

#include <unistd.h>

#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/rows/problem.h"

namespace tessera::cpu::rows {
namespace {

std::int64_t last_cache_bytes() {
  static const std::int64_t bytes = std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), std::int64_t{8} << 20);
  return bytes;
}

}  // namespace

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

Stores stores_for(std::int64_t bytes) { return bytes > last_cache_bytes() ? Stores::past_caches : Stores::cached; }

}  // namespace tessera::cpu::rows

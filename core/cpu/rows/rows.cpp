#include "core/cpu/isa.h"
#include "core/cpu/machine_memory.h"
#include "core/cpu/rows/problem.h"

namespace tessera::cpu::rows {

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

Stores stores_for(std::int64_t bytes) { return exceeds_caches(bytes) ? Stores::past_caches : Stores::cached; }

}  // namespace tessera::cpu::rows

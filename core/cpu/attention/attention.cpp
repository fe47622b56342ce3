#include "core/cpu/attention/problem.h"
#include "core/cpu/isa.h"

namespace tessera::cpu::attention {

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

}  // namespace tessera::cpu::attention

#include "core/cpu/attention/problem.h"
#include "core/cpu/isa.h"

namespace tessera::cpu::attention {

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

const Kernels& kernels_of_bf16() {
  static const bool has_bf16 = __builtin_cpu_supports("avx512bf16") != 0;
  return has_bf16 && isa() == Isa::avx512 ? kAvx512Bf16Kernels : kernels();
}

}  // namespace tessera::cpu::attention

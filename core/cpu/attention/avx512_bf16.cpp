#include "core/cpu/attention/kernels.h"

namespace tessera::cpu::attention {
namespace {

constexpr Kernels with_pairs() {
  Kernels kernels = kernels_of<16, Pair>();
  kernels.pair_rows = pair_rows<16>;
  kernels.pair_down = pair_down<16>;
  return kernels;
}

}  // namespace

constinit const Kernels kAvx512Bf16Kernels = with_pairs();

}  // namespace tessera::cpu::attention

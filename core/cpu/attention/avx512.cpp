#include "core/cpu/attention/kernels.h"

namespace tessera::cpu::attention {

constinit const Kernels kAvx512Kernels = kernels_of<16>();

}  // namespace tessera::cpu::attention

#include "core/cpu/attention/kernels.h"

namespace tessera::cpu::attention {

constinit const Kernels kAvx2Kernels = kernels_of<8>();

}  // namespace tessera::cpu::attention

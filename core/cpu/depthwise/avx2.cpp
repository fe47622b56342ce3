#include "core/cpu/depthwise/kernels.h"

namespace tessera::cpu::depthwise {

constinit const Kernels kAvx2Kernels = kernels_of<8>();

}  // namespace tessera::cpu::depthwise

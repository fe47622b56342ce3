#include "core/cpu/depthwise/kernels.h"

namespace tessera::cpu::depthwise {

constinit const Kernels kAvx512Kernels = kernels_of<16>();

}  // namespace tessera::cpu::depthwise

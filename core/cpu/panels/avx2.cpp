#include "core/cpu/panels/kernels.h"

namespace tessera::cpu::panels {

constinit const Kernels kAvx2Kernels = kernels_of<8>();

}  // namespace tessera::cpu::panels

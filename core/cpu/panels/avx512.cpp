#include "core/cpu/panels/kernels.h"

namespace tessera::cpu::panels {

constinit const Kernels kAvx512Kernels = kernels_of<16>();

}  // namespace tessera::cpu::panels

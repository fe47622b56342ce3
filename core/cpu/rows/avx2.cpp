#include "core/cpu/rows/kernels.h"

namespace tessera::cpu::rows {

constinit const Kernels kAvx2Kernels = kernels_of<8>();

}  // namespace tessera::cpu::rows

#include "core/cpu/rows/kernels.h"

namespace tessera::cpu::rows {

constinit const Kernels kAvx512Kernels = kernels_of<16>();

}  // namespace tessera::cpu::rows

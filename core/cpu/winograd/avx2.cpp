#include "core/cpu/winograd/kernels.h"

namespace tessera::cpu::winograd {

const Kernels kAvx2Kernels = kernels_of<8>();

}  // namespace tessera::cpu::winograd

#include "core/cpu/winograd/kernels.h"

namespace tessera::cpu::winograd {

constinit const Kernels kAvx2Kernels = kernels_of<8>();

}  // namespace tessera::cpu::winograd

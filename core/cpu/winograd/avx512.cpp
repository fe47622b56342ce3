#include "core/cpu/winograd/kernels.h"

namespace tessera::cpu::winograd {

constinit const Kernels kAvx512Kernels = kernels_of<16>();

}  // namespace tessera::cpu::winograd

#include "core/cpu/sparse/kernels.h"

namespace tessera::cpu::sparse {

constinit const Kernels kAvx2Kernels = kernels_of<8>();

}  // namespace tessera::cpu::sparse

#include "core/cpu/sparse/kernels.h"

namespace tessera::cpu::sparse {

constinit const Kernels kAvx512Kernels = kernels_of<16>();

}  // namespace tessera::cpu::sparse

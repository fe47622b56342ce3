#include "core/cuda/runtime/built_for.h"

namespace tessera::cuda {

#ifdef __CUDA_ARCH_LIST__
int least_capability() noexcept {
  constexpr int kArchitectures[]{__CUDA_ARCH_LIST__};  // of nvcc, sorted upwards: 800, 900
  return kArchitectures[0] / 10;
}
#else
int least_capability() noexcept { return 0; }  // no device code: the host's compiler made the kernels for a simulated GPU
#endif

}  // namespace tessera::cuda

#include "core/cuda/runtime/built_for.h"

namespace tessera::cuda {

#ifdef __CUDA_ARCH_LIST__
int least_capability() noexcept {
  constexpr int kArchitectures[]{__CUDA_ARCH_LIST__};  // set by nvcc, in ascending order: 800, 900
  return kArchitectures[0] / 10;
}
#else
int least_capability() noexcept { return 0; }  // no device code: the host's compiler built the kernels for a simulated GPU
#endif

}  // namespace tessera::cuda

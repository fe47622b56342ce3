#include "core/cuda/core_conv/gather_kernel.cuh"

namespace tessera::cuda::core_conv {

void gather_partial(int tile, const GatherProblem& problem, const GatherOperands& operands, Device device) {
  visit_index<kOtherTiles.size()>(tile, [&]<int kIndex>() {
    if (problem.stride == 1) {
      launch_gather<kIndex, 1, false>(problem, operands, device);
    } else {
      launch_gather<kIndex, 2, false>(problem, operands, device);
    }
  });
}

}  // namespace tessera::cuda::core_conv

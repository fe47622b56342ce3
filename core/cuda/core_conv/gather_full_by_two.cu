#include "core/cuda/core_conv/gather_kernel.cuh"

namespace tessera::cuda::core_conv {

void gather_full_by_two(int tile, const GatherProblem& problem, const GatherOperands& operands, Device device) {
  visit_index<kOtherTiles.size()>(tile, [&]<int kIndex>() { launch_gather<kIndex, 2, true>(problem, operands, device); });
}

}  // namespace tessera::cuda::core_conv

// Passes of the fused Tucker-2 convolution on tensor cores.
#include "core/cuda/tucker_conv/chain.h"
#include "core/cuda/tucker_conv/mma.h"

namespace tessera::cuda {

void launch_chain_tf32(const ChainArguments<float>& arguments, const BlockShape& block, Device device) {
  launch_chain<float, Mma<float, 1, 2>, Mma<float, 1, 4>, Mma<float, 2, 4>>(arguments, block, device);
}

void launch_chain_bf16(const ChainArguments<bfloat16>& arguments, const BlockShape& block, Device device) {
  launch_chain<bfloat16, Mma<bfloat16, 1, 2>, Mma<bfloat16, 1, 4>, Mma<bfloat16, 2, 4>>(arguments, block, device);
}

void launch_chain_f16(const ChainArguments<float16>& arguments, const BlockShape& block, Device device) {
  launch_chain<float16, Mma<float16, 1, 2>, Mma<float16, 1, 4>, Mma<float16, 2, 4>>(arguments, block, device);
}

}  // namespace tessera::cuda

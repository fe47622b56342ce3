// Passes of the fused Tucker-2 convolution on the f32 units.
#include "core/cuda/tucker_conv/chain.h"
#include "core/cuda/tucker_conv/ffma.h"

namespace tessera::cuda {

void launch_chain_f32(const ChainArguments<float>& arguments, const BlockShape& block, Device device) {
  launch_chain<float, Ffma<1, 16>, Ffma<1, 8>, Ffma<2, 8>, Ffma<4, 8>, Ffma<4, 16>, Ffma<8, 16>>(arguments, block, device);
}

}  // namespace tessera::cuda

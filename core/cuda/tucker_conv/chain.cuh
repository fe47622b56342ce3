// The kernel around a pass, and the launch of the block shape that a plan chose.
#pragma once

#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/tucker_conv/chain.h"
#include "core/cuda/tucker_conv/ffma.h"
#include "core/cuda/tucker_conv/kernels.h"
#include "core/cuda/tucker_conv/mma.h"

namespace tessera::cuda {

template <class Math>
__global__ void __launch_bounds__(kChainThreads, resident_by_registers(block_shape<Math>()))
    tucker_chain(const __grid_constant__ ChainArguments<typename Math::Storage> args) {
  DeviceBlock<typename Math::State> block;
  run_chain<Math>(block, args, blockIdx.x, dynamic_shared<char>());
}

template <class Math>
bool launch_chain_if(const ChainArguments<typename Math::Storage>& args, const BlockShape& block, Device device) {
  if (block.rows != Math::kShape.rows || block.columns != Math::kShape.columns) return false;
  const LaunchShape shape{dim3(static_cast<unsigned>(args.shape.grid().blocks())), dim3(kChainThreads),
                          static_cast<std::size_t>(chain_layout(args.shape, block).total)};
  launch("tucker_conv", device, shape, tucker_chain<Math>, args);
  return true;
}

// Of the block shapes listed, the one that is `block`.
template <class T, class... Maths>
void launch_chain(const ChainArguments<T>& args, const BlockShape& block, Device device) {
  const bool launched = (launch_chain_if<Maths>(args, block, device) || ...);
  TESSERA_CHECK(launched, InternalError, "tucker_conv: no kernel for blocks of ", block.rows, " x ", block.columns);
}

}  // namespace tessera::cuda

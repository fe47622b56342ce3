// One pass of a fused Tucker-2 convolution (geometry.h), as the phases of one thread block. A block owns tile_h x tile_w outputs
// of one class of one image. Phase 1 computes the narrow image under them with its halo, channels of x staged in slices; phase 2
// the core from it; phase 3 widens, adds bias and residual and rectifies. Both narrow images stay in shared memory; where the
// arguments ask for it, they are also stored, each pixel by the tile that owns it.
#pragma once

#include "core/cuda/tucker_conv/chain_core.h"
#include "core/cuda/tucker_conv/chain_narrow.h"
#include "core/cuda/tucker_conv/chain_widen.h"

namespace tessera::cuda {

// Block `index` of the grid. All branches here are the same for all its threads.
template <class Math, class Block>
TESSERA_INLINE void run_chain(Block& block, const ChainArguments<typename Math::Storage>& arguments, std::int64_t index,
                              char* shared) {
  ChainTile<Math, Block> c(block, arguments, index, shared);
  if (c.empty()) return;
  if (c.rows.taps > 0 && c.columns.taps > 0) {
    if (c.shape.has_in) narrow_image(c);
    else copy_image(c);
  }
  if (c.args.y == nullptr && c.args.narrow_out == nullptr) return;
  convolve_core(c);
  if (c.shape.has_out && c.args.y != nullptr) widen_image(c);
}

}  // namespace tessera::cuda

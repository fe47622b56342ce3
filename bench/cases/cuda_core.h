// The kernels of our own for core convolutions, against cuDNN, and the tile that their model chooses against the one that a clock
// does.
#pragma once

#include <vector>

#include "bench/cases/tile_sweep.h"
#include "bench/dense_shapes.h"
#include "core/cuda/runtime/limits.h"

namespace tessera::bench {

// The 18 core convolutions on which TDC (Xiang et al., PPoPP 2023, "TDC: Towards extremely efficient CNNs on GPUs via
// hardware-aware Tucker decomposition") was timed: one image, 3x3, stride 1.
std::vector<ConvShape> core_shapes();

// In f32: "own 14x8 pixels x 32 channels, ..." or "library".
TilePick core_pick(const ConvShape& shape, const cuda::Limits& limits);
TilePick core_pick(const ConvShape& shape, Device device);

// f32 without tf32; the op may take the library. Throws InternalError where no tile can run the shape.
SweptCase core_case(const ConvShape& shape, Device device);

}  // namespace tessera::bench

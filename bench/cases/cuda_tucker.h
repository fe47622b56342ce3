// The fused Tucker-2 convolution against three convolutions, and the block and tile that its model chooses against those that a
// clock does.
#pragma once

#include <string>
#include <vector>

#include "bench/cases/tile_sweep.h"
#include "core/cuda/runtime/limits.h"
#include "core/cuda/tucker_conv/plan.h"

namespace tessera::bench {

// Layers around core_shapes(): twice as many channels outside as a rank has.
std::vector<cuda::TuckerConvShape> tucker_shapes();
std::string to_string(const cuda::TuckerConvShape& conv);  // "1x56x56x128 -> 64 -> 32 -> 64, 3x3"

// In inference: "fused, 4x8 pixels in blocks of 32x32" or "three convolutions".
TilePick tucker_pick(const cuda::TuckerConvShape& conv, const cuda::Limits& limits);
TilePick tucker_pick(const cuda::TuckerConvShape& conv, Device device);

// f32 without tf32, in inference, without a bias. The op takes what tucker2_conv2d does under the decisions in force: `taken` is
// "fused" or "three convolutions". Rivals: three convolutions, by libraries alone and by what conv2d picks; their narrow images
// exist before the timing. Throws InternalError where no block can run the layer.
SweptCase tucker_case(const cuda::TuckerConvShape& conv, Device device);

}  // namespace tessera::bench

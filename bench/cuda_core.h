// The kernels of our own for core convolutions, against cuDNN, and the tile that their model chooses against the one that a clock
// does.
#pragma once

#include "bench/dense_shapes.h"
#include "bench/device_rotation.h"

namespace tessera::bench {

// The 18 core convolutions on which TDC (Xiang et al., PPoPP 2023, "TDC: Towards extremely efficient CNNs on GPUs via
// hardware-aware Tucker decomposition") was timed: one image, 3x3, stride 1.
std::vector<ConvShape> core_shapes();

// f32 without tf32. `ours` are the tile that a sweep found the fastest, the one that the model predicts to be, and the op, which
// may take the library. Throws InternalError where no tile can run the shape.
struct CoreCase {
  RotatedCase rotated;
  Value tiles;  // [{name, ms, predicted_ms}] of those swept, the model's choice first
};
CoreCase core_case(const ConvShape& shape, Device device);

}  // namespace tessera::bench

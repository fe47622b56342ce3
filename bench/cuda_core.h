// The kernels of our own for core convolutions, against cuDNN, and the tile that their model chooses against the one that a clock
// does.
#pragma once

#include <string>

#include "bench/dense_shapes.h"
#include "bench/device_rotation.h"
#include "core/cuda/limits.h"

namespace tessera::bench {

// The 18 core convolutions on which TDC (Xiang et al., PPoPP 2023, "TDC: Towards extremely efficient CNNs on GPUs via
// hardware-aware Tucker decomposition") was timed: one image, 3x3, stride 1.
std::vector<ConvShape> core_shapes();

// What the planner takes where no clock decides, in f32: "own 14x8 pixels x 32 channels, ..." or "library", then with the reason.
struct CorePick {
  std::string planned;
  std::string reason = {};
};
CorePick core_pick(const ConvShape& shape, const cuda::Limits& limits);
CorePick core_pick(const ConvShape& shape, Device device);

// f32 without tf32. `ours` are the op, which may take the library, the tile that a sweep found the fastest, and the one that the
// model predicts to be. Throws InternalError where no tile can run the shape.
struct CoreCase {
  RotatedCase rotated;
  Value tiles;  // [{name, ms, predicted_ms}] of those swept, the model's choice first
};
CoreCase core_case(const ConvShape& shape, Device device);

}  // namespace tessera::bench

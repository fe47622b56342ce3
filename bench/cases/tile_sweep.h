// A kernel of ours in every tile that its model ranks, by the clock.
#pragma once

#include <string>
#include <vector>

#include "bench/device_rotation.h"

namespace tessera::bench {

struct Tile {
  RotatedSide side;
  double seconds;  // predicted
};

// What a planner takes where no clock decides, and why, where it is no kernel of ours.
struct TilePick {
  std::string planned;
  std::string reason = {};
};

// `rotated.ours` are the op, the tile that a sweep found the fastest, and the one that the model predicts to be.
struct SweptCase {
  RotatedCase rotated;
  Value tiles;  // [{name, ms, predicted_ms}] of those swept, the model's choice first
  std::string taken = {};  // what the op runs, where the case knows it
};

// Sweeps `tiles`, at least one, the model's choice first, and adds the two ways to those of `rotated`.
SweptCase with_swept_tiles(RotatedCase rotated, std::vector<Tile> tiles, Device device);

}  // namespace tessera::bench

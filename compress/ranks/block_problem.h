#pragma once

#include <string>

namespace tessera {

// What the network shows to be wrong with a pass's block, and at which of its keys: "ranks[1].layers"; "" for the block itself.
struct BlockProblem {
  std::string key;
  std::string message;
};

}  // namespace tessera

// What the softmax of a tile has seen so far. Included like kernels.h.
#pragma once

#include <limits>

#include "core/cpu/vectors.h"

namespace tessera::cpu::attention {
namespace {

inline constexpr float kLowest = std::numeric_limits<float>::lowest();

// For each lane of a vector: the largest score so far, and the sum of exp(score - top).
template <int W>
struct Running {
  Vec<W> top = Vec<W>{} + kLowest;
  Vec<W> total{};
};

}  // namespace
}  // namespace tessera::cpu::attention

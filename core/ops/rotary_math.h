// Rotations of rotary position embeddings, shared by both devices.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/support/host_device.h"

namespace tessera {

// The angle by which each position turns pair i further than the one before.
TESSERA_HD inline double rotary_rate(std::int64_t i, std::int64_t width, double base) {
  return std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
}

template <class T>
struct RotaryPair {
  T first, second;
};

template <class T>
TESSERA_HD inline RotaryPair<T> rotated(T first, T second, T cosine, T sine) {
  return {first * cosine - second * sine, second * cosine + first * sine};
}

}  // namespace tessera

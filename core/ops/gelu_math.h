// Both forms of the Gaussian error linear unit, shared by both devices.
#pragma once

#include <cmath>
#include <numbers>

#include "core/support/host_device.h"

namespace tessera {

inline constexpr double kGeluCubic = 0.044715;
inline constexpr double kSqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
inline constexpr double kInvSqrtTwoPi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;

template <class T>
TESSERA_HD inline T normal_distribution(T x) {
  return T(0.5) * (T(1) + std::erf(x * static_cast<T>(1.0 / std::numbers::sqrt2)));
}

template <class T>
TESSERA_HD inline T gelu_tanh(T x) {
  return std::tanh(static_cast<T>(kSqrtTwoOverPi) * (x + static_cast<T>(kGeluCubic) * x * x * x));
}

struct GeluErfForward {
  template <class T>
  TESSERA_HD T operator()(T x) const { return x * normal_distribution(x); }
};

struct GeluErfBackward {
  template <class T>
  TESSERA_HD T operator()(T x, T g) const {
    const T density = static_cast<T>(kInvSqrtTwoPi) * std::exp(T(-0.5) * x * x);
    return g * (normal_distribution(x) + x * density);
  }
};

struct GeluTanhForward {
  template <class T>
  TESSERA_HD T operator()(T x) const { return T(0.5) * x * (T(1) + gelu_tanh(x)); }
};

struct GeluTanhBackward {
  template <class T>
  TESSERA_HD T operator()(T x, T g) const {
    const T t = gelu_tanh(x);
    const T slope = static_cast<T>(kSqrtTwoOverPi) * (T(1) + static_cast<T>(3.0 * kGeluCubic) * x * x);
    return g * T(0.5) * (T(1) + t + x * (T(1) - t * t) * slope);
  }
};

}  // namespace tessera

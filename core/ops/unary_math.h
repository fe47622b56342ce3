// Formulas of roots, powers and bounds, shared by both devices; not for fast-math, because their edge cases matter. Saved operand
// first, then the gradient.
#pragma once

#include <cmath>

#include "core/support/host_device.h"

namespace tessera {

struct SqrtForward {
  template <class T>
  TESSERA_HD T operator()(T x) const { return std::sqrt(x); }
};

struct SqrtBackward {
  template <class T>
  TESSERA_HD T operator()(T y, T g) const { return g / (T(2) * y); }
};

struct PowForward {
  double exponent;
  template <class T>
  TESSERA_HD T operator()(T x) const { return std::pow(x, static_cast<T>(exponent)); }
};

struct PowBackward {
  double exponent;
  template <class T>
  TESSERA_HD T operator()(T x, T g) const {
    return exponent == 0.0 ? T(0) : g * static_cast<T>(exponent) * std::pow(x, static_cast<T>(exponent - 1.0));
  }
};

struct Square {
  template <class T>
  TESSERA_HD T operator()(T x) const { return x * x; }
};

struct SquareBackward {
  template <class T>
  TESSERA_HD T operator()(T x, T g) const { return T(2) * x * g; }
};

struct ClampForward {
  double low;
  double high;
  template <class T>
  TESSERA_HD T operator()(T x) const {
    const T raised = x < static_cast<T>(low) ? static_cast<T>(low) : x;
    return raised > static_cast<T>(high) ? static_cast<T>(high) : raised;
  }
};

struct ClampBackward {
  double low;
  double high;
  template <class T>
  TESSERA_HD T operator()(T x, T g) const { return x < static_cast<T>(low) || x > static_cast<T>(high) ? T(0) : g; }
};

}  // namespace tessera

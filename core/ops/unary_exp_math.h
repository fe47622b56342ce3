// Formulas of the unary functions that rest on exp, log and tanh, shared by both devices. None of them tests for NaN, so that
// they may be built with fast-math. Saved operand first, then the gradient.
#pragma once

#include <cmath>

#include "core/support/host_device.h"

namespace tessera {

// 1 / (1 + exp(-x)) through exp(-|x|) <= 1: nothing overflows, because fast-math assumes that there is no infinity.
template <class T>
TESSERA_HD inline T stable_sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

struct ExpForward {
  template <class T>
  TESSERA_HD T operator()(T x) const { return std::exp(x); }
};

struct ExpBackward {
  template <class T>
  TESSERA_HD T operator()(T y, T g) const { return g * y; }
};

struct LogForward {
  template <class T>
  TESSERA_HD T operator()(T x) const { return std::log(x); }
};

struct LogBackward {
  template <class T>
  TESSERA_HD T operator()(T x, T g) const { return g / x; }
};

struct SigmoidForward {
  template <class T>
  TESSERA_HD T operator()(T x) const { return stable_sigmoid(x); }
};

struct SigmoidBackward {
  template <class T>
  TESSERA_HD T operator()(T y, T g) const { return g * y * (T(1) - y); }
};

struct TanhForward {
  template <class T>
  TESSERA_HD T operator()(T x) const { return std::tanh(x); }
};

struct TanhBackward {
  template <class T>
  TESSERA_HD T operator()(T y, T g) const { return g * (T(1) - y * y); }
};

struct SiluForward {
  template <class T>
  TESSERA_HD T operator()(T x) const { return x * stable_sigmoid(x); }
};

struct SiluBackward {
  template <class T>
  TESSERA_HD T operator()(T x, T g) const {
    const T s = stable_sigmoid(x);
    return g * s * (T(1) + x * (T(1) - s));
  }
};

}  // namespace tessera

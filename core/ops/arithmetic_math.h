// Arithmetic functors shared by both devices.
#pragma once

#include "core/support/host_device.h"

namespace tessera {

struct Add {
  template <class T>
  TESSERA_HD T operator()(T a, T b) const { return a + b; }
};

struct Sub {
  template <class T>
  TESSERA_HD T operator()(T a, T b) const { return a - b; }
};

struct Mul {
  template <class T>
  TESSERA_HD T operator()(T a, T b) const { return a * b; }
};

struct Div {
  template <class T>
  TESSERA_HD T operator()(T a, T b) const { return a / b; }
};

struct DivNegated {
  template <class T>
  TESSERA_HD T operator()(T a, T b) const { return -a / b; }
};

struct Affine {
  double scale;
  double shift;
  template <class T>
  TESSERA_HD T operator()(T x) const { return static_cast<T>(scale) * x + static_cast<T>(shift); }
};

struct ScalarDiv {
  double value;
  template <class T>
  TESSERA_HD T operator()(T x) const { return static_cast<T>(value) / x; }
};

// f with one operand fixed: a whole tensor against a single number.
template <class F, class T>
struct BindFirst {
  F f;
  T a;
  TESSERA_HD T operator()(T b) const { return f(a, b); }
};

template <class F, class T>
struct BindSecond {
  F f;
  T b;
  TESSERA_HD T operator()(T a) const { return f(a, b); }
};

}  // namespace tessera

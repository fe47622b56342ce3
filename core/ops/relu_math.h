// The rectifier's formulas, shared by both devices. Comparisons are written so that NaN passes through.
#pragma once

#include "core/support/host_device.h"

namespace tessera {

struct ReluForward {
  template <class T>
  TESSERA_HD T operator()(T x) const { return x < T(0) ? T(0) : x; }
};

struct ReluBackward {
  template <class T>
  TESSERA_HD T operator()(T y, T g) const { return y <= T(0) ? T(0) : g; }
};

}  // namespace tessera

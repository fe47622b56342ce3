// Division of counts upwards, on either device.
#pragma once

#include <type_traits>

#include "core/support/host_device.h"

namespace tessera {

// Requires a >= 0 and b > 0.
template <class T>
TESSERA_HD constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

// The least multiple of b that is not below a.
template <class T>
TESSERA_HD constexpr T round_up(T a, std::type_identity_t<T> b) {
  return ceil_div(a, b) * b;
}

}  // namespace tessera

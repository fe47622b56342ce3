// Which of a group's elements an N:M mask keeps, for the kernels of both devices.
#pragma once

#include <cstdint>

#include "core/support/host_device.h"

namespace tessera {

// Whether element k of a group of m is among the n of largest |w|; of equal ones the first are. As NOfMPattern does, so that a
// mask that is frozen keeps what the step before it kept. A NaN is kept, to be found.
template <class T>
TESSERA_HD inline bool among_largest(const T* group, std::int64_t n, std::int64_t m, std::int64_t k) {
  const auto size = [](T value) { return value < T(0) ? -value : value; };
  std::int64_t better = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    better += size(group[i]) > size(group[k]) || (size(group[i]) == size(group[k]) && i < k) ? 1 : 0;
  }
  return better < n;
}

}  // namespace tessera

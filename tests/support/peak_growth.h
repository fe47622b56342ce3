// How much more memory a call holds at once than was held before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <optional>

#include "core/cpu/machine_memory.h"

namespace tessera {

// In bytes; none where the system does not start its count of the peak again (/proc/self/clear_refs).
template <class F>
std::optional<std::size_t> peak_growth(const F& f) {
  std::ofstream count("/proc/self/clear_refs");
  if (!(count << 5 << std::flush)) return std::nullopt;
  const std::size_t before = cpu::peak_resident();
  f();
  return cpu::peak_resident() - std::min(before, cpu::peak_resident());
}

}  // namespace tessera

// Height and width of a window, a step or a border.
#pragma once

#include <cstdint>
#include <ostream>

namespace tessera {

struct Extent {
  std::int64_t h = 1;
  std::int64_t w = 1;

  friend constexpr bool operator==(const Extent&, const Extent&) noexcept = default;
};

inline std::ostream& operator<<(std::ostream& out, const Extent& extent) { return out << extent.h << 'x' << extent.w; }

}  // namespace tessera

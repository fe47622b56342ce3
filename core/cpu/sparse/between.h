// Parts of ascending lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace tessera::cpu::sparse {

// The part of `ascending` whose numbers lie in [first, last).
inline std::span<const std::int32_t> between(std::span<const std::int32_t> ascending, std::int64_t first, std::int64_t last) {
  const auto begin = std::ranges::lower_bound(ascending, first);
  return {begin, std::lower_bound(begin, ascending.end(), last)};
}

}  // namespace tessera::cpu::sparse

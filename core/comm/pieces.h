// Which elements of a tensor a rank sums for all.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera {

// Rank r among n has elements [begin_of_piece(count, r, n), begin_of_piece(count, r + 1, n)).
inline std::int64_t begin_of_piece(std::int64_t count, int rank, int ranks) {
  return count / ranks * rank + std::min<std::int64_t>(rank, count % ranks);
}

}  // namespace tessera

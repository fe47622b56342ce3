// A reduction over some axes of N operands as two nested loops, shared by both devices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/strided_loop.h"

namespace tessera {

// `kept` runs over the results, `summed` over what goes into each; the innermost dimension of the operands belongs to the one
// whose last size is not 1, so that memory is read in order. Operand N is the result, broadcast to the shape of the others.
template <std::size_t N>
struct ReduceLoops {
  StridedLoop<N + 1> kept;
  StridedLoop<N + 1> summed;
  bool rows = false;  // the innermost dimension is summed

  explicit ReduceLoops(const StridedLoop<N + 1>& all) {
    rows = all.strides[N][static_cast<std::size_t>(all.rank - 1)] == 0;
    for (int i = 0; i < all.rank; ++i) {
      const bool sum = all.strides[N][static_cast<std::size_t>(i)] == 0;
      if (i + 1 == all.rank) append(sum ? kept : summed, 1, {});
      std::array<std::int64_t, N + 1> strides{};
      for (std::size_t k = 0; k <= N; ++k) strides[k] = all.strides[k][static_cast<std::size_t>(i)];
      append(sum ? summed : kept, all.sizes[static_cast<std::size_t>(i)], strides);
    }
  }

  static void append(StridedLoop<N + 1>& loop, std::int64_t size, const std::array<std::int64_t, N + 1>& strides) {
    const auto at = static_cast<std::size_t>(loop.rank++);
    loop.sizes[at] = size;
    for (std::size_t k = 0; k <= N; ++k) loop.strides[k][at] = strides[k];
  }

  std::int64_t summed_count() const { return summed.outer() * summed.inner(); }
};

}  // namespace tessera

// Walks a StridedLoop, one index after the other or its rows in parallel.
#pragma once

#include <array>
#include <cstdint>

#include "core/cpu/parallel.h"
#include "core/strided_loop.h"

namespace tessera::cpu {

// The offsets of one index after the other over a loop's first `axes` dimensions, without a division for each.
template <std::size_t N>
class StridedWalk {
 public:
  StridedWalk(const StridedLoop<N>& loop, int axes, std::int64_t index) : loop_(loop), axes_(axes) {
    for (int i = axes - 1; i >= 0; --i) {
      const auto axis = static_cast<std::size_t>(i);
      index_[axis] = index % loop.sizes[axis];
      index /= loop.sizes[axis];
      for (std::size_t k = 0; k < N; ++k) at_[k] += index_[axis] * loop.strides[k][axis];
    }
  }

  const std::array<std::int64_t, N>& at() const { return at_; }
  std::int64_t index(int axis) const { return index_[static_cast<std::size_t>(axis)]; }

  // The last index is followed by the first one.
  void advance() {
    for (int i = axes_ - 1; i >= 0; --i) {
      const auto axis = static_cast<std::size_t>(i);
      const bool last = ++index_[axis] == loop_.sizes[axis];
      const std::int64_t by = last ? 1 - loop_.sizes[axis] : 1;
      for (std::size_t k = 0; k < N; ++k) at_[k] += by * loop_.strides[k][axis];
      if (!last) return;
      index_[axis] = 0;
    }
  }

 private:
  const StridedLoop<N>& loop_;
  int axes_;
  std::array<std::int64_t, Shape::kMaxRank> index_{};
  std::array<std::int64_t, N> at_{};
};

// Calls row(offsets, length) for pieces of inner rows, in parallel. One long row is cut between the threads.
template <std::size_t N, class Row>
void for_each_row(const StridedLoop<N>& loop, Row&& row) {
  const std::int64_t outer = loop.outer();
  const std::int64_t inner = loop.inner();
  if (outer == 0 || inner == 0) return;
  if (outer == 1) {
    parallel_for(inner, kGrain, [&](std::int64_t begin, std::int64_t end) {
      std::array<std::int64_t, N> at{};
      for (std::size_t k = 0; k < N; ++k) at[k] = begin * loop.inner_stride(k);
      row(at, end - begin);
    });
    return;
  }
  parallel_for(outer, std::max<std::int64_t>(1, kGrain / inner), [&](std::int64_t begin, std::int64_t end) {
    StridedWalk<N> walk(loop, loop.rank - 1, begin);
    for (std::int64_t i = begin; i < end; ++i, walk.advance()) row(walk.at(), inner);
  });
}

}  // namespace tessera::cpu

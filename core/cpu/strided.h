// Walks a StridedLoop's rows in parallel.
#pragma once

#include <array>
#include <cstdint>

#include "core/cpu/parallel.h"
#include "core/strided_loop.h"

namespace tessera::cpu {

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
    for (std::int64_t i = begin; i < end; ++i) row(loop.offsets(i), inner);
  });
}

}  // namespace tessera::cpu

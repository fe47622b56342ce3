// Joins what rows have seen of chunks of keys. Included like kernels.h.
#pragma once

#include <cmath>

#include "core/cpu/attention/columns.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/attention/running.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::attention {
namespace {

// y becomes the sum of those of chunks, in order; returns the log of the sum of exponentials, 0 where no key was seen. `totals`
// become the factors of the chunks' sums.
template <int W>
float join_chunks(const float* tops, float* totals, const ChunkSums& chunks, float* y) {
  Vec<W> top = Vec<W>{} + kLowest, total{};
  for (std::int64_t c = 0; c < chunks.count; c += W) {
    const Vec<W> here = load<W>(tops + c);
    top = here > top ? here : top;
  }
  const float most = largest_lane<W>(top);
  for (std::int64_t c = 0; c < chunks.count; c += W) {
    const Vec<W> factor = exp_below<W>(load<W>(tops + c) - most), seen = load<W>(totals + c);
    total += factor * seen;
    store<W>(seen == 0.0F ? Vec<W>{} : factor, totals + c);
  }
  const float sum = lane_sum<W>(total), inverse = sum == 0 ? 0 : 1 / sum;
  for_each_columns<W>(
      chunks.width, [&]<int V>(std::int64_t at) __attribute__((always_inline)) {
        Vec<W> all[V]{};
        for (std::int64_t c = 0; c < chunks.count; ++c) {
          if (totals[c] == 0) continue;  // that chunk has written no sums, or none that count
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) all[v] += totals[c] * load<W>(chunks.y + c * chunks.step + at + v * W);
        }
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) store<W>(all[v] * inverse, y + at + v * W);
      });
  return sum == 0 ? 0 : most + std::log(sum);
}

}  // namespace
}  // namespace tessera::cpu::attention

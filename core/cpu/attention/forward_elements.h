// The part of a forward for pairs that a sparse pattern keeps one by one. Included like kernels.h.
#pragma once

#include <cstring>

#include "core/cpu/attention/arrays.h"
#include "core/cpu/attention/chunks.h"
#include "core/cpu/attention/drop_factors.h"
#include "core/cpu/attention/elements.h"
#include "core/cpu/attention/layout.h"
#include "core/cpu/attention/running.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::attention {
namespace {

// The softmax of lanes so far: the largest score, the sum of exp(score - top), and that of the rows of values.
struct LaneSums {
  float* rows;
  std::int64_t pitch;
  float top[kQueries], total[kQueries];

  LaneSums(float* scratch, std::int64_t columns) : rows(scratch), pitch(columns) {
    fill(top, kQueries, kLowest);
    fill(total, kQueries, 0);
    fill(rows, kQueries * pitch, 0);
  }
};

// Raises tops to the scores of a chunk, and multiplies sums to fit.
template <int W>
void raise_tops(const Chunk& chunk, const float* scores, LaneSums& sums) {
  float factors[kQueries];
  std::memcpy(factors, sums.top, sizeof factors);
  for (std::int64_t i = 0; i < chunk.elements; ++i) {
    float& top = sums.top[chunk.runs.lanes[i]];
    top = scores[i] > top ? scores[i] : top;  // a NaN enters by its exponential
  }
  for (std::int64_t i = 0; i < kQueries; i += W) {
    store<W>(exp_below<W>(load<W>(factors + i) - load<W>(sums.top + i)), factors + i);
  }
  for (std::int64_t i = 0; i < kQueries; ++i) {
    if (factors[i] == 1) continue;
    sums.total[i] *= factors[i];
    for (std::int64_t c = 0; c < sums.pitch; c += W) {
      float* const at = sums.rows + i * sums.pitch + c;
      store<W>(load<W>(at) * factors[i], at);
    }
  }
}

// y becomes the sum over the elements, of exp(score - top) times values; `running` has the tops and sums.
template <int W>
void forward_elements(const ForwardTile& t, Running<W> (&running)[kQueries / W]) {
  const std::int64_t pitch = t.keys.pitch;
  float* const products = t.scores;
  float* const scores = products + kChunk * kLanes;
  float* const tops = scores + kChunk;
  LaneSums sums(t.far.rows, pitch);
  for_each_chunk(t.far.elements, [&](const Chunk& chunk) {
    dots_of<W>(chunk, t.keys.k, t.queries.rows, pitch, products, scores);
    raise_tops<W>(chunk, scores, sums);
    take(chunk, sums.top, tops);
    exponentials_of<W>(chunk.elements, tops, scores);
    for (std::int64_t i = 0; i < chunk.elements; ++i) sums.total[chunk.runs.lanes[i]] += scores[i];
    if (t.dropout.rate > 0) {
      drop_factors(t.dropout, t.form, t.queries, chunk, tops);
      multiply_all(tops, chunk.elements, scores);
    }
    for_each_run(chunk, [&](std::int64_t key, const std::uint8_t* lanes, std::int64_t count, std::int64_t at) {
      for_each_part<W>(pitch, [&]<int V>(std::int64_t c) {
        add_to_rows<W, V>(t.keys.v + key * pitch + c, scores + at, lanes, count, sums.rows + c, pitch);
      });
    });
  });
  turn<W>(sums.rows, pitch, t.form.width, t.y);
  for (std::int64_t v = 0; v < kQueries / W; ++v) running[v] = {load<W>(sums.top + v * W), load<W>(sums.total + v * W)};
}

}  // namespace
}  // namespace tessera::cpu::attention

// The part of a forward that a tile of keys has. Included like kernels.h.
#pragma once

#include "core/cpu/attention/drop_factors.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/attention/running.h"
#include "core/cpu/attention/sight.h"
#include "core/cpu/block_products.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::attention {
namespace {

// Scores of a tile become exp(score - top); `running` goes on. Returns what earlier sums are multiplied by.
template <int W, bool kAll>
Vec<W> exponentials(const Sight<W>& sight, const KeyTile& keys, std::int64_t lane, float* scores, Running<W>& running) {
  const Vec<W> hidden = Vec<W>{} + kLowest;
  Vec<W> top = running.top;
  for (std::int64_t j = 0; j < keys.count; ++j) {
    Vec<W> s = load<W>(scores + j * kQueries + lane);
    if constexpr (!kAll) s = sight.lanes(keys, j, lane) ? s : hidden;
    top = s > top ? s : top;  // a NaN enters by its exponential
  }
  const Vec<W> rescale = exp_below<W>(running.top - top);
  Vec<W> total = running.total * rescale;
  for (std::int64_t j = 0; j < keys.count; ++j) {
    Vec<W> p = exp_below<W>(load<W>(scores + j * kQueries + lane) - top);
    if constexpr (!kAll) p = sight.lanes(keys, j, lane) ? p : Vec<W>{};
    total += p;
    store<W>(p, scores + j * kQueries + lane);
  }
  running = {top, total};
  return rescale;
}

template <int W>
void multiply_rows(const Vec<W>* factors, std::int64_t vectors, std::int64_t rows, float* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t v = 0; v < vectors; ++v) {
      store<W>(load<W>(y + r * kQueries + v * W) * factors[v], y + r * kQueries + v * W);
    }
  }
}

template <int W, class T>
void forward_keys(const ForwardTile& t, const Sight<W>& sight, const KeyTile& keys, bool all, Running<W>* running) {
  const std::int64_t width = t.form.width, pitch = t.keys.pitch;
  const Extents of_scores{.rows = keys.count, .columns = keys.lanes, .depth = steps_of<T>(width)};
  const Extents of_sums{.rows = width, .columns = keys.lanes, .depth = steps_of<T>(keys.count)};
  float* const scores = t.scores + keys.lane;
  float* const y = t.y + keys.lane;
  if constexpr (std::is_same_v<T, Pair>) {
    multiply<W>(of_scores, {.at = t.paired.k + keys.first * pitch / 2, .row = pitch / 2, .step = 1}, t.paired.q + keys.lane,
                kQueries, scores, kQueries, false, t.ahead);
  } else {
    multiply<W>(of_scores, {.at = t.keys.k + keys.first * pitch, .row = pitch, .step = 1}, t.queries.q + keys.lane, kQueries,
                scores, kQueries, false, t.ahead);
  }
  Vec<W> rescale[kQueries / W];
  for (std::int64_t v = 0; v < keys.lanes / W; ++v) {
    const std::int64_t lane = keys.lane + v * W;
    rescale[v] = all ? exponentials<W, true>(sight, keys, lane, t.scores, running[lane / W])
                     : exponentials<W, false>(sight, keys, lane, t.scores, running[lane / W]);
  }
  multiply_rows<W>(rescale, keys.lanes / W, width, y);
  if (t.dropout.rate > 0) {
    float* const factors = t.scores + kKeys * kQueries;
    drop_factors(t.dropout, t.form, t.queries, keys, factors);
    multiply_lanes(factors, keys, t.scores);
  }
  if constexpr (std::is_same_v<T, Pair>) {
    Pair* const p = t.paired.scores + keys.lane;
    pair_down<W>(scores, keys.count, keys.lanes, kQueries, p);
    multiply<W>(of_sums, {.at = t.paired.v_down + keys.first / 2 * pitch, .row = 1, .step = pitch}, p, kQueries, y, kQueries,
                true, t.ahead);
  } else {
    multiply<W>(of_sums, {.at = t.keys.v + keys.first * pitch, .row = 1, .step = pitch}, scores, kQueries, y, kQueries, true,
                t.ahead);
  }
}

}  // namespace
}  // namespace tessera::cpu::attention

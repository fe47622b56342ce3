// The part of a backward that a tile of keys has. Included like kernels.h.
#pragma once

#include "core/cpu/attention/drop_factors.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/attention/products.h"
#include "core/cpu/attention/sight.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::attention {
namespace {

// scores become probabilities p, and grads, the gradients of what was dropped from them, those of the scores: p (grads - inner).
template <int W, bool kAll>
void score_gradients(const Sight<W>& sight, const KeyTile& keys, const BackwardTile& t, float* p, float* grads) {
  for (std::int64_t lane = keys.lane; lane < keys.lane + keys.lanes; lane += W) {
    const Vec<W> log_sum = load<W>(t.log_sums + lane), inner = load<W>(t.inner + lane);
    for (std::int64_t j = 0; j < keys.count; ++j) {
      const std::int64_t at = j * kQueries + lane;
      Vec<W> probability = exp_of<W>(load<W>(p + at) - log_sum);
      if constexpr (!kAll) probability = sight.lanes(keys, j, lane) ? probability : Vec<W>{};
      store<W>(probability, p + at);
      store<W>(probability * (load<W>(grads + at) - inner), grads + at);
    }
  }
}

template <int W>
void backward_keys(const BackwardTile& t, const Sight<W>& sight, const KeyTile& keys, bool all) {
  const std::int64_t width = t.form.width, pitch = t.keys.pitch, first = keys.first * pitch;
  float* const p = t.scores;
  float* const grads = p + kKeys * kQueries;
  float* const factors = grads + kKeys * kQueries;
  const Scalars k{.at = t.keys.k + first, .row = pitch, .step = 1}, v{.at = t.keys.v + first, .row = pitch, .step = 1};
  const Extents scores{.rows = keys.count, .columns = keys.lanes, .depth = width};
  const Extents rows{.rows = keys.count, .columns = pitch, .depth = keys.lanes};
  multiply<W>(scores, k, t.queries.q + keys.lane, kQueries, p + keys.lane, kQueries, false);
  multiply<W>(scores, v, t.grad_y + keys.lane, kQueries, grads + keys.lane, kQueries, false);
  if (t.dropout.rate > 0) {
    drop_factors(t.dropout, t.form, t.queries, keys, factors);
    multiply_lanes(factors, keys, grads);
  }
  all ? score_gradients<W, true>(sight, keys, t, p, grads) : score_gradients<W, false>(sight, keys, t, p, grads);
  multiply<W>({.rows = width, .columns = keys.lanes, .depth = keys.count}, {.at = t.keys.k + first, .row = 1, .step = pitch},
              grads + keys.lane, kQueries, t.grad_q + keys.lane, kQueries, true);
  multiply<W>(rows, {.at = grads + keys.lane, .row = kQueries, .step = 1}, t.queries.rows + keys.lane * pitch, pitch,
              t.grad_k + first, pitch, true);
  if (t.dropout.rate > 0) multiply_lanes(factors, keys, p);
  multiply<W>(rows, {.at = p + keys.lane, .row = kQueries, .step = 1}, t.grad_y_rows + keys.lane * pitch, pitch, t.grad_v + first,
              pitch, true);
}

}  // namespace
}  // namespace tessera::cpu::attention

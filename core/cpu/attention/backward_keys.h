// The part of a backward that a tile of keys has. Included like kernels.h.
#pragma once

#include "core/cpu/attention/drop_factors.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/attention/sight.h"
#include "core/cpu/block_products.h"
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
      Vec<W> probability = exp_below<W>(load<W>(p + at) - log_sum);  // not above 1 but for rounding
      if constexpr (!kAll) probability = sight.lanes(keys, j, lane) ? probability : Vec<W>{};
      store<W>(probability, p + at);
      store<W>(probability * (load<W>(grads + at) - inner), grads + at);
    }
  }
}

// The probabilities p and the gradients of the scores, of a tile of keys: [count][kQueries].
struct ScoreGradients {
  float *p, *grads;
};

template <int W>
void multiply_scores(const BackwardTile& t, const KeyTile& keys, const ScoreGradients& to, const float*) {
  const std::int64_t pitch = t.keys.pitch, first = keys.first * pitch;
  const Extents extents{.rows = keys.count, .columns = keys.lanes, .depth = t.form.width};
  multiply<W>(extents, {.at = t.keys.k + first, .row = pitch, .step = 1}, t.queries.q + keys.lane, kQueries, to.p + keys.lane,
              kQueries, false, t.ahead);
  multiply<W>(extents, {.at = t.keys.v + first, .row = pitch, .step = 1}, t.grad_y + keys.lane, kQueries, to.grads + keys.lane,
              kQueries, false, t.ahead);
}
template <int W>
void multiply_scores(const BackwardTile& t, const KeyTile& keys, const ScoreGradients& to, const Pair*) {
  const std::int64_t pitch = t.keys.pitch / 2, first = keys.first * pitch;
  const Extents extents{.rows = keys.count, .columns = keys.lanes, .depth = steps_of<Pair>(t.form.width)};
  multiply<W>(extents, {.at = t.paired.k + first, .row = pitch, .step = 1}, t.paired.q + keys.lane, kQueries, to.p + keys.lane,
              kQueries, false, t.ahead);
  multiply<W>(extents, {.at = t.paired.v + first, .row = pitch, .step = 1}, t.paired.grad_y + keys.lane, kQueries,
              to.grads + keys.lane, kQueries, false, t.ahead);
}

template <int W>
void add_tile_gradients(const BackwardTile& t, const KeyTile& keys, const ScoreGradients& from, const float*) {
  const std::int64_t width = t.form.width, pitch = t.keys.pitch, first = keys.first * pitch;
  const Extents rows{.rows = keys.count, .columns = pitch, .depth = keys.lanes};
  multiply<W>({.rows = width, .columns = keys.lanes, .depth = keys.count}, {.at = t.keys.k + first, .row = 1, .step = pitch},
              from.grads + keys.lane, kQueries, t.grad_q + keys.lane, kQueries, true, t.ahead);
  multiply<W>(rows, {.at = from.grads + keys.lane, .row = kQueries, .step = 1}, t.queries.rows + keys.lane * pitch, pitch,
              t.grad_k + first, pitch, true, t.ahead);
  multiply<W>(rows, {.at = from.p + keys.lane, .row = kQueries, .step = 1}, t.grad_y_rows + keys.lane * pitch, pitch,
              t.grad_v + first, pitch, true, t.ahead);
}
template <int W>
void add_tile_gradients(const BackwardTile& t, const KeyTile& keys, const ScoreGradients& from, const Pair*) {
  const std::int64_t width = t.form.width, pitch = t.keys.pitch, first = keys.first * pitch, lane = keys.lane / 2;
  const Extents rows{.rows = keys.count, .columns = pitch, .depth = keys.lanes / 2};
  Pair* const p = t.paired.scores;
  Pair* const grads = p + kKeys * kQueries / 2;
  Pair* const grads_down = grads + kKeys * kQueries / 2;
  pair_rows<W>(from.p + keys.lane, keys.count, keys.lanes, kQueries, p + lane);
  pair_rows<W>(from.grads + keys.lane, keys.count, keys.lanes, kQueries, grads + lane);
  pair_down<W>(from.grads + keys.lane, keys.count, keys.lanes, kQueries, grads_down + keys.lane);
  multiply<W>({.rows = width, .columns = keys.lanes, .depth = steps_of<Pair>(keys.count)},
              {.at = t.paired.k_down + first / 2, .row = 1, .step = pitch}, grads_down + keys.lane, kQueries,
              t.grad_q + keys.lane, kQueries, true, t.ahead);
  multiply<W>(rows, {.at = grads + lane, .row = kQueries / 2, .step = 1}, t.paired.q_down + lane * pitch, pitch, t.grad_k + first,
              pitch, true, t.ahead);
  multiply<W>(rows, {.at = p + lane, .row = kQueries / 2, .step = 1}, t.paired.grad_y_down + lane * pitch, pitch,
              t.grad_v + first, pitch, true, t.ahead);
}

template <int W, class T>
void backward_keys(const BackwardTile& t, const Sight<W>& sight, const KeyTile& keys, bool all) {
  constexpr const T* kOperands = nullptr;
  const ScoreGradients scores{t.scores, t.scores + kKeys * kQueries};
  float* const factors = scores.grads + kKeys * kQueries;
  multiply_scores<W>(t, keys, scores, kOperands);
  if (t.dropout.rate > 0) {
    drop_factors(t.dropout, t.form, t.queries, keys, factors);
    multiply_lanes(factors, keys, scores.grads);
  }
  all ? score_gradients<W, true>(sight, keys, t, scores.p, scores.grads)
      : score_gradients<W, false>(sight, keys, t, scores.p, scores.grads);
  if (t.dropout.rate > 0) multiply_lanes(factors, keys, scores.p);
  add_tile_gradients<W>(t, keys, scores, kOperands);
}

}  // namespace
}  // namespace tessera::cpu::attention

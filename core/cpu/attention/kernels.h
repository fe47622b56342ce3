// Attention of a tile of queries over all keys. Included only by the files that build it for one instruction set each; W, the
// lanes of a vector, tells their instances apart.
#pragma once

#include <cmath>

#include "core/cpu/attention/backward_elements.h"
#include "core/cpu/attention/forward_elements.h"
#include "core/cpu/attention/layout.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/attention/products.h"
#include "core/cpu/attention/running.h"
#include "core/cpu/attention/sight.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::attention {
namespace {

// factors [count][kQueries]: 1 / (1 - rate) where the probability of a lane's query and a key is kept, else 0; of the tile's
// lanes.
inline void drop_factors(const Dropout& dropout, const AttentionForm& form, const Queries& queries, const KeyTile& keys,
                         float* factors) {
  const auto kept = static_cast<float>(1 / (1 - dropout.rate));
  for (std::int64_t j = 0; j < keys.count; j += 4) {
    for (std::int64_t i = keys.lane; i < keys.lane + keys.lanes; ++i) {
      const auto block = static_cast<std::uint64_t>((queries.row + i) * form.blocks() + (keys.first + j) / 4);
      const auto words = random_words(dropout.stream, dropout.step, block);
      for (std::int64_t w = 0; w < lesser(4, keys.count - j); ++w) {
        factors[(j + w) * kQueries + i] = words[static_cast<std::size_t>(w)] >> 8 >= dropout.threshold ? kept : 0.0F;
      }
    }
  }
}

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
  const Vec<W> rescale = exp_of<W>(running.top - top);
  Vec<W> total = running.total * rescale;
  for (std::int64_t j = 0; j < keys.count; ++j) {
    Vec<W> p = exp_of<W>(load<W>(scores + j * kQueries + lane) - top);
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

// Of the tile's lanes.
inline void multiply_lanes(const float* factors, const KeyTile& keys, float* values) {
  for (std::int64_t j = 0; j < keys.count; ++j) {
    multiply_all(factors + j * kQueries + keys.lane, keys.lanes, values + j * kQueries + keys.lane);
  }
}

template <int W>
void forward_keys(const ForwardTile& t, const Sight<W>& sight, const KeyTile& keys, bool all, Running<W>* running) {
  const std::int64_t width = t.form.width, pitch = t.keys.pitch;
  multiply<W>({.rows = keys.count, .columns = keys.lanes, .depth = width},
              {.at = t.keys.k + keys.first * pitch, .row = pitch, .step = 1}, t.queries.q + keys.lane, kQueries,
              t.scores + keys.lane, kQueries, false);
  Vec<W> rescale[kQueries / W];
  for (std::int64_t v = 0; v < keys.lanes / W; ++v) {
    const std::int64_t lane = keys.lane + v * W;
    rescale[v] = all ? exponentials<W, true>(sight, keys, lane, t.scores, running[lane / W])
                     : exponentials<W, false>(sight, keys, lane, t.scores, running[lane / W]);
  }
  multiply_rows<W>(rescale, keys.lanes / W, width, t.y + keys.lane);
  if (t.dropout.rate > 0) {
    float* const factors = t.scores + kKeys * kQueries;
    drop_factors(t.dropout, t.form, t.queries, keys, factors);
    multiply_lanes(factors, keys, t.scores);
  }
  multiply<W>({.rows = width, .columns = keys.lanes, .depth = keys.count},
              {.at = t.keys.v + keys.first * pitch, .row = 1, .step = pitch}, t.scores + keys.lane, kQueries, t.y + keys.lane,
              kQueries, true);
}

template <int W>
void forward(const ForwardTile& t) {
  constexpr std::int64_t kVectors = kQueries / W;
  const Sight<W> sight(t.form, t.queries, t.keys.mask);
  Running<W> running[kVectors];
  if (t.far.elements.runs > 0) {
    forward_elements<W>(t, running);
  } else {
    fill(t.y, t.form.width * kQueries, 0);
  }
  const auto keys = [&](const KeyTile& tile, bool all) { forward_keys<W>(t, sight, tile, all, running); };
  for_each_far_block(sight, t.far.blocks, t.form.keys, keys);
  for_each_tile(sight, keys);
  Vec<W> inverse[kVectors];
  for (std::int64_t v = 0; v < kVectors; ++v) {
    const Vec<W> total = running[v].total;
    inverse[v] = total == 0.0F ? Vec<W>{} : 1.0F / total;
    for (int i = 0; i < W; ++i) t.log_sums[v * W + i] = total[i] == 0 ? 0.0F : running[v].top[i] + std::log(total[i]);
  }
  multiply_rows<W>(inverse, kVectors, t.form.width, t.y);
}

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

template <int W>
void backward(const BackwardTile& t) {
  const Sight<W> sight(t.form, t.queries, t.keys.mask);
  if (t.far.elements.runs > 0) {
    backward_elements<W>(t);
  } else {
    fill(t.grad_q, t.form.width * kQueries, 0);
  }
  const auto keys = [&](const KeyTile& tile, bool all) { backward_keys<W>(t, sight, tile, all); };
  for_each_far_block(sight, t.far.blocks, t.form.keys, keys);
  for_each_tile(sight, keys);
}

template <int W>
constexpr Kernels kernels_of() {
  return {forward<W>, backward<W>, turn<W>, turn_back<W>};
}

}  // namespace
}  // namespace tessera::cpu::attention

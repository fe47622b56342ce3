// Attention of a tile of queries over all keys. Included only by the files that build it for one instruction set each; W, the
// lanes of a vector, tells their instances apart.
#pragma once

#include <cmath>
#include <limits>

#include "core/cpu/attention/problem.h"
#include "core/cpu/attention/products.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::attention {
namespace {

inline constexpr float kLowest = std::numeric_limits<float>::lowest();

// In place of the standard library's: an instance of that, built for these instructions, could be linked in for all.
inline std::int64_t lesser(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t greater(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
inline void fill(float* values, std::int64_t count, float value) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = value;
}

// Which lanes of a tile see key `key`: all bits set where they do.
template <int W>
class Sight {
 public:
  Sight(const AttentionForm& form, const Queries& queries, const std::uint8_t* mask) : mask_(mask) {
    begin_ = all_to_ = form.keys;
    for (std::int64_t i = 0; i < kQueries; ++i) {
      const std::int64_t query = queries.first + lesser(i, queries.count - 1);
      const std::int64_t first = form.first_key(query), end = form.end_key(query);
      first_[i] = static_cast<std::int32_t>(first);
      ends_[i] = static_cast<std::int32_t>(greater(end, first));
      begin_ = lesser(begin_, first);
      end_ = greater(end_, end);
      all_from_ = greater(all_from_, first);
      all_to_ = lesser(all_to_, end);
    }
  }

  std::int64_t begin() const { return begin_; }  // keys before it are seen by no lane, and those from end() on
  std::int64_t end() const { return end_; }
  bool sees_all(std::int64_t from, std::int64_t to) const {
    if (from < all_from_ || to > all_to_) return false;
    return seen_by_mask(from, to) == to - from;
  }
  bool sees_none(std::int64_t from, std::int64_t to) const { return seen_by_mask(from, to) == 0; }
  // The vectors of lanes [first, end) that may see a key of [from, to). Bounds rise from query to query, so that they are
  // neighbours.
  std::int64_t first_vector(std::int64_t from) const {
    std::int64_t v = 0;
    while (v < kQueries / W && ends_[v * W + W - 1] <= from) ++v;
    return v;
  }
  std::int64_t end_vector(std::int64_t to) const {
    std::int64_t v = kQueries / W;
    while (v > 0 && first_[(v - 1) * W] >= to) --v;
    return v;
  }
  IntVec<W> lanes(std::int64_t key, std::int64_t lane) const {
    const IntVec<W> at = IntVec<W>{} + static_cast<std::int32_t>(key);
    IntVec<W> first, last;
    std::memcpy(&first, first_ + lane, sizeof first);
    std::memcpy(&last, ends_ + lane, sizeof last);
    const IntVec<W> seen = (at >= first) & (at < last);
    return mask_ != nullptr && mask_[key] == 0 ? IntVec<W>{} : seen;
  }

 private:
  std::int64_t seen_by_mask(std::int64_t from, std::int64_t to) const {
    if (mask_ == nullptr) return to - from;
    std::int64_t seen = 0;
    for (std::int64_t j = from; j < to; ++j) seen += mask_[j] != 0;
    return seen;
  }

  const std::uint8_t* mask_;
  std::int32_t first_[kQueries], ends_[kQueries];
  std::int64_t begin_, end_ = 0, all_from_ = 0, all_to_;
};

// factors [count][kQueries]: 1 / (1 - rate) where the probability of a lane's query and key first + j is kept, else 0.
inline void drop_factors(const Dropout& dropout, const AttentionForm& form, const Queries& queries, std::int64_t first,
                         std::int64_t count, float* factors) {
  const auto kept = static_cast<float>(1 / (1 - dropout.rate));
  for (std::int64_t j = 0; j < count; j += 4) {
    for (std::int64_t i = 0; i < kQueries; ++i) {
      const auto block = static_cast<std::uint64_t>((queries.row + i) * form.blocks() + (first + j) / 4);
      const auto words = random_words(dropout.stream, dropout.step, block);
      for (std::int64_t w = 0; w < lesser(4, count - j); ++w) {
        factors[(j + w) * kQueries + i] = words[static_cast<std::size_t>(w)] >> 8 >= dropout.threshold ? kept : 0.0F;
      }
    }
  }
}

// The keys of a tile, and the lanes that may see some of them: whole vectors.
struct KeyTile {
  std::int64_t first, count;
  std::int64_t lane, lanes;
};

// Calls body(KeyTile, whether all lanes see all of it) for the tiles of keys that some lane may see, in ascending order. They
// begin at multiples of kKeys, so that sums do not depend on what else a query sees.
template <int W, class Body>
void for_each_tile(const Sight<W>& sight, Body&& body) {
  for (std::int64_t first = sight.begin() / kKeys * kKeys; first < sight.end(); first += kKeys) {
    const std::int64_t end = lesser(first + kKeys, sight.end());
    const std::int64_t from = sight.first_vector(first), to = sight.end_vector(end);
    if (from >= to || sight.sees_none(first, end)) continue;
    body(KeyTile{first, end - first, from * W, (to - from) * W}, sight.sees_all(first, end));
  }
}

// What the lanes of a vector have seen so far: the largest score, and the sum of exp(score - top).
template <int W>
struct Running {
  Vec<W> top = Vec<W>{} + kLowest;
  Vec<W> total{};
};

// Scores of a tile become exp(score - top); `running` goes on. Returns what earlier sums are multiplied by.
template <int W, bool kAll>
Vec<W> exponentials(const Sight<W>& sight, const KeyTile& keys, std::int64_t lane, float* scores, Running<W>& running) {
  const Vec<W> hidden = Vec<W>{} + kLowest;
  Vec<W> top = running.top;
  for (std::int64_t j = 0; j < keys.count; ++j) {
    Vec<W> s = load<W>(scores + j * kQueries + lane);
    if constexpr (!kAll) s = sight.lanes(keys.first + j, lane) ? s : hidden;
    top = s > top ? s : top;  // a NaN enters by its exponential
  }
  const Vec<W> rescale = exp_of<W>(running.top - top);
  Vec<W> total = running.total * rescale;
  for (std::int64_t j = 0; j < keys.count; ++j) {
    Vec<W> p = exp_of<W>(load<W>(scores + j * kQueries + lane) - top);
    if constexpr (!kAll) p = sight.lanes(keys.first + j, lane) ? p : Vec<W>{};
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

inline void multiply_all(const float* factors, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factors[i];
}

template <int W>
void forward(const ForwardTile& t) {
  constexpr std::int64_t kVectors = kQueries / W;
  const Sight<W> sight(t.form, t.queries, t.keys.mask);
  const std::int64_t width = t.form.width, pitch = t.keys.pitch;
  Running<W> running[kVectors];
  fill(t.y, width * kQueries, 0);
  for_each_tile(sight, [&](const KeyTile& keys, bool all) {
    multiply<W>({.rows = keys.count, .columns = keys.lanes, .depth = width},
                {.at = t.keys.k + keys.first * pitch, .row = pitch, .step = 1}, t.queries.q + keys.lane, kQueries,
                t.scores + keys.lane, kQueries, false);
    Vec<W> rescale[kVectors];
    for (std::int64_t v = 0; v < keys.lanes / W; ++v) {
      const std::int64_t lane = keys.lane + v * W;
      rescale[v] = all ? exponentials<W, true>(sight, keys, lane, t.scores, running[lane / W])
                       : exponentials<W, false>(sight, keys, lane, t.scores, running[lane / W]);
    }
    multiply_rows<W>(rescale, keys.lanes / W, width, t.y + keys.lane);
    if (t.dropout.rate > 0) {
      float* const factors = t.scores + kKeys * kQueries;
      drop_factors(t.dropout, t.form, t.queries, keys.first, keys.count, factors);
      multiply_all(factors, keys.count * kQueries, t.scores);
    }
    multiply<W>({.rows = width, .columns = keys.lanes, .depth = keys.count},
                {.at = t.keys.v + keys.first * pitch, .row = 1, .step = pitch}, t.scores + keys.lane, kQueries, t.y + keys.lane,
                kQueries, true);
  });
  Vec<W> inverse[kVectors];
  for (std::int64_t v = 0; v < kVectors; ++v) {
    const Vec<W> total = running[v].total;
    inverse[v] = total == 0.0F ? Vec<W>{} : 1.0F / total;
    for (int i = 0; i < W; ++i) t.log_sums[v * W + i] = total[i] == 0 ? 0.0F : running[v].top[i] + std::log(total[i]);
  }
  multiply_rows<W>(inverse, kVectors, width, t.y);
}

// scores become probabilities p, and grads, the gradients of what was dropped from them, those of the scores: p (grads - inner).
template <int W, bool kAll>
void score_gradients(const Sight<W>& sight, const KeyTile& keys, const BackwardTile& t, float* p, float* grads) {
  for (std::int64_t lane = keys.lane; lane < keys.lane + keys.lanes; lane += W) {
    const Vec<W> log_sum = load<W>(t.log_sums + lane), inner = load<W>(t.inner + lane);
    for (std::int64_t j = 0; j < keys.count; ++j) {
      const std::int64_t at = j * kQueries + lane;
      Vec<W> probability = exp_of<W>(load<W>(p + at) - log_sum);
      if constexpr (!kAll) probability = sight.lanes(keys.first + j, lane) ? probability : Vec<W>{};
      store<W>(probability, p + at);
      store<W>(probability * (load<W>(grads + at) - inner), grads + at);
    }
  }
}

template <int W>
void backward(const BackwardTile& t) {
  const Sight<W> sight(t.form, t.queries, t.keys.mask);
  const std::int64_t width = t.form.width, pitch = t.keys.pitch;
  float* const p = t.scores;
  float* const grads = p + kKeys * kQueries;
  float* const factors = grads + kKeys * kQueries;
  fill(t.grad_q, width * kQueries, 0);
  for_each_tile(sight, [&](const KeyTile& keys, bool all) {
    const std::int64_t first = keys.first * pitch;
    const Scalars k{.at = t.keys.k + first, .row = pitch, .step = 1}, v{.at = t.keys.v + first, .row = pitch, .step = 1};
    const Extents scores{.rows = keys.count, .columns = keys.lanes, .depth = width};
    const Extents rows{.rows = keys.count, .columns = pitch, .depth = keys.lanes};
    multiply<W>(scores, k, t.queries.q + keys.lane, kQueries, p + keys.lane, kQueries, false);
    multiply<W>(scores, v, t.grad_y + keys.lane, kQueries, grads + keys.lane, kQueries, false);
    if (t.dropout.rate > 0) {
      drop_factors(t.dropout, t.form, t.queries, keys.first, keys.count, factors);
      multiply_all(factors, keys.count * kQueries, grads);
    }
    all ? score_gradients<W, true>(sight, keys, t, p, grads) : score_gradients<W, false>(sight, keys, t, p, grads);
    multiply<W>({.rows = width, .columns = keys.lanes, .depth = keys.count}, {.at = t.keys.k + first, .row = 1, .step = pitch},
                grads + keys.lane, kQueries, t.grad_q + keys.lane, kQueries, true);
    multiply<W>(rows, {.at = grads + keys.lane, .row = kQueries, .step = 1}, t.q_rows + keys.lane * pitch, pitch,
                t.grad_k + first, pitch, true);
    if (t.dropout.rate > 0) multiply_all(factors, keys.count * kQueries, p);
    multiply<W>(rows, {.at = p + keys.lane, .row = kQueries, .step = 1}, t.grad_y_rows + keys.lane * pitch, pitch,
                t.grad_v + first, pitch, true);
  });
}

// to [width][kQueries] from rows [kQueries][pitch].
template <int W>
void turn(const float* rows, std::int64_t pitch, std::int64_t width, float* to) {
  for (std::int64_t i = 0; i < kQueries; i += W) {
    for (std::int64_t c = 0; c < width; c += W) {
      Vec<W> v[W];
#pragma GCC unroll 16
      for (int r = 0; r < W; ++r) v[r] = load<W>(rows + (i + r) * pitch + c);
      transpose<W>(v);
#pragma GCC unroll 16
      for (int r = 0; r < W; ++r) {
        if (c + r < width) store<W>(v[r], to + (c + r) * kQueries + i);
      }
    }
  }
}

// The way back; what lies behind `width` is written too.
template <int W>
void turn_back(const float* from, std::int64_t width, float* rows, std::int64_t pitch) {
  for (std::int64_t i = 0; i < kQueries; i += W) {
    for (std::int64_t c = 0; c < width; c += W) {
      Vec<W> v[W];
#pragma GCC unroll 16
      for (int r = 0; r < W; ++r) v[r] = c + r < width ? load<W>(from + (c + r) * kQueries + i) : Vec<W>{};
      transpose<W>(v);
#pragma GCC unroll 16
      for (int r = 0; r < W; ++r) store<W>(v[r], rows + (i + r) * pitch + c);
    }
  }
}

template <int W>
constexpr Kernels kernels_of() {
  return {forward<W>, backward<W>, turn<W>, turn_back<W>};
}

}  // namespace
}  // namespace tessera::cpu::attention

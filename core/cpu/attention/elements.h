// Dot products of rows, and sums of rows, for the pairs of queries and keys that a sparse pattern keeps one by one, beside the
// band. The row of the key that a run shares is held in registers meanwhile. Included like kernels.h.
#pragma once

#include "core/cpu/attention/arrays.h"
#include "core/cpu/attention/chunks.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::attention {
namespace {

template <int W>
inline constexpr int kHeld = W == 16 ? 4 : 2;  // vectors of each row in registers at once

// Calls body.operator()<V>(first column) for parts of V vectors of `columns`, a multiple of kLanes.
template <int W, class Body>
[[gnu::always_inline]] inline void for_each_part(std::int64_t columns, const Body& body) {
  std::int64_t c = 0;
  for (; c + kHeld<W> * W <= columns; c += kHeld<W> * W) body.template operator()<kHeld<W>>(c);
  if constexpr (W == 16) {
    switch ((columns - c) / W) {
      case 3: return body.template operator()<3>(c);
      case 2: return body.template operator()<2>(c);
      case 1: return body.template operator()<1>(c);
      default: return;
    }
  }
}

template <int W, int V>
[[gnu::always_inline]] inline void load_row(const float* from, Vec<W> (&row)[V]) {
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) row[v] = load<W>(from + v * W);
}
template <int W, int V>
[[gnu::always_inline]] inline void store_row(const Vec<W> (&row)[V], float* to) {
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) store<W>(row[v], to + v * W);
}

// Sums neighbouring blocks of Step lanes of v[2 i] and of v[2 i + 1], those of the first into even blocks; then the results with
// twice the step. In the end lane i of v[0] has the sum of v[i].
template <int W, int Step = 1>
[[gnu::always_inline]] inline Vec<W> sums_of(Vec<W> (&v)[W]) {
  if constexpr (Step == W) {
    return v[0];
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < W / Step / 2; ++i) {
      v[i] =
          shuffled<W, FirstBlocks<W, Step>>(v[2 * i], v[2 * i + 1]) + shuffled<W, SecondBlocks<W, Step>>(v[2 * i], v[2 * i + 1]);
    }
    return sums_of<W, 2 * Step>(v);
  }
}

// products [elements][W]: lane by lane, of part of a key's row with those of lanes.
template <int W, int V, bool kAdd>
[[gnu::always_inline]] inline void row_products(const float* key, const float* rows, std::int64_t pitch,
                                                const std::uint8_t* lanes, std::int64_t count, float* products) {
  Vec<W> x[V];
  load_row<W, V>(key, x);
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const row = rows + lanes[i] * pitch;
    Vec<W> sum = x[0] * load<W>(row);
    if constexpr (kAdd) sum += load<W>(products + i * W);
#pragma GCC unroll 4
    for (int v = 1; v < V; ++v) sum += x[v] * load<W>(row + v * W);
    store<W>(sum, products + i * W);
  }
}

// dots [elements, rounded up to W]: of the rows of their keys and lanes; what lies behind the elements is of no meaning.
template <int W>
void dots_of(const Chunk& chunk, const float* keys, const float* rows, std::int64_t pitch, float* products, float* dots) {
  for_each_run(chunk, [&](std::int64_t key, const std::uint8_t* lanes, std::int64_t count, std::int64_t at) {
    for_each_part<W>(pitch, [&]<int V>(std::int64_t c) {
      const float* const part = keys + key * pitch + c;
      c == 0 ? row_products<W, V, false>(part, rows + c, pitch, lanes, count, products + at * W)
             : row_products<W, V, true>(part, rows + c, pitch, lanes, count, products + at * W);
    });
  });
  fill(products + chunk.elements * W, (W - chunk.elements % W) % W * W, 0);
  for (std::int64_t e = 0; e < chunk.elements; e += W) {
    Vec<W> v[W];
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) v[i] = load<W>(products + (e + i) * W);
    store<W>(sums_of<W>(v), dots + e);
  }
}

// rows of lanes += factors times part of a key's row.
template <int W, int V>
[[gnu::always_inline]] inline void add_to_rows(const float* key, const float* factors, const std::uint8_t* lanes,
                                               std::int64_t count, float* rows, std::int64_t pitch) {
  Vec<W> x[V];
  load_row<W, V>(key, x);
  for (std::int64_t i = 0; i < count; ++i) {
    float* const row = rows + lanes[i] * pitch;
    Vec<W> sum[V];
    load_row<W, V>(row, sum);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[v] += factors[i] * x[v];
    store_row<W, V>(sum, row);
  }
}

// exp(scores - shifts) of elements.
template <int W>
void exponentials_of(std::int64_t elements, const float* shifts, float* scores) {
  for (std::int64_t e = 0; e < elements; e += W) store<W>(exp_below<W>(load<W>(scores + e) - load<W>(shifts + e)), scores + e);
}

}  // namespace
}  // namespace tessera::cpu::attention

// The part of a backward for pairs that a sparse pattern keeps one by one. Included like kernels.h.
#pragma once

#include "core/cpu/attention/arrays.h"
#include "core/cpu/attention/chunks.h"
#include "core/cpu/attention/drop_factors.h"
#include "core/cpu/attention/elements.h"
#include "core/cpu/attention/layout.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::attention {
namespace {

// What the gradients of a tile are made from, and the gradients, for some of the columns.
struct GradientRows {
  const float *q, *grad_y;  // of queries
  float* grad_q;
  const float* k;  // of keys
  float *grad_k, *grad_v;
  std::int64_t pitch;

  GradientRows from(std::int64_t column, std::int64_t key) const {
    const std::int64_t at = key * pitch + column;
    return {q + column, grad_y + column, grad_q + column, k + at, grad_k + at, grad_v + at, pitch};
  }
};

// Adds what the elements of a run give, by their probabilities and the gradients of their scores, to the gradients of the key's
// rows and of their queries' rows.
template <int W, int V>
[[gnu::always_inline]] inline void add_gradients(const GradientRows& rows, const std::uint8_t* lanes, std::int64_t count,
                                                 const float* probabilities, const float* grads) {
  Vec<W> k[V], grad_k[V], grad_v[V];
  load_row<W, V>(rows.k, k);
  load_row<W, V>(rows.grad_k, grad_k);
  load_row<W, V>(rows.grad_v, grad_v);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = lanes[i] * rows.pitch;
    const float p = probabilities[i], grad = grads[i];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      grad_k[v] += grad * load<W>(rows.q + at + v * W);
      grad_v[v] += p * load<W>(rows.grad_y + at + v * W);
      store<W>(load<W>(rows.grad_q + at + v * W) + grad * k[v], rows.grad_q + at + v * W);
    }
  }
  store_row<W, V>(grad_k, rows.grad_k);
  store_row<W, V>(grad_v, rows.grad_v);
}

// Scores become probabilities p, and grads, the gradients of what was dropped from them, those of the scores: p (grads - inner).
template <int W>
void score_gradients(const Chunk& chunk, const BackwardTile& t, float* scores, float* grads, float* of_elements) {
  const std::int64_t count = chunk.elements;
  take(chunk, t.log_sums, of_elements);
  exponentials_of<W>(count, of_elements, scores);
  if (t.dropout.rate > 0) {
    float* const factors = of_elements + kChunk;
    drop_factors(t.dropout, t.form, t.queries, chunk, factors);
    multiply_all(factors, count, grads);
  }
  take(chunk, t.inner, of_elements);
  for (std::int64_t i = 0; i < count; ++i) grads[i] = scores[i] * (grads[i] - of_elements[i]);
  if (t.dropout.rate > 0) multiply_all(of_elements + kChunk, count, scores);
}

// Gradients of k and v are added to; that of q becomes the sum over the elements.
template <int W>
void backward_elements(const BackwardTile& t) {
  const std::int64_t pitch = t.keys.pitch;
  const GradientRows all{t.queries.rows, t.grad_y_rows, t.far.rows, t.keys.k, t.grad_k, t.grad_v, pitch};
  float* const products = t.scores;
  float* const scores = products + kChunk * kLanes;
  float* const grads = scores + kChunk;
  fill(t.far.rows, kQueries * pitch, 0);
  for_each_chunk(t.far.elements, [&](const Chunk& chunk) {
    dots_of<W>(chunk, t.keys.k, t.queries.rows, pitch, products, scores);
    dots_of<W>(chunk, t.keys.v, t.grad_y_rows, pitch, products, grads);
    score_gradients<W>(chunk, t, scores, grads, grads + kChunk);
    for_each_run(chunk, [&](std::int64_t key, const std::uint8_t* lanes, std::int64_t count, std::int64_t at) {
      for_each_part<W>(
          pitch, [&]<int V>(std::int64_t c) { add_gradients<W, V>(all.from(c, key), lanes, count, scores + at, grads + at); });
    });
  });
  turn<W>(t.far.rows, pitch, t.form.width, t.grad_q);
}

}  // namespace
}  // namespace tessera::cpu::attention

// Attention of a tile of queries over all keys. Included only by the files that build it for one instruction set each; W, the
// lanes of a vector, and T, what the products of tiles of keys multiply (float or Pair), tell their instances apart.
#pragma once

#include <cmath>

#include "core/cpu/attention/arrays.h"
#include "core/cpu/attention/backward_elements.h"
#include "core/cpu/attention/backward_keys.h"
#include "core/cpu/attention/few.h"
#include "core/cpu/attention/few_join.h"
#include "core/cpu/attention/forward_elements.h"
#include "core/cpu/attention/forward_keys.h"
#include "core/cpu/attention/layout.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/attention/running.h"
#include "core/cpu/attention/sight.h"

namespace tessera::cpu::attention {
namespace {

template <int W, class T>
void forward(const ForwardTile& t) {
  constexpr std::int64_t kVectors = kQueries / W;
  const Sight<W> sight(t.form, t.queries, t.keys.mask);
  Running<W> running[kVectors];
  if (t.far.elements.runs > 0) {
    forward_elements<W>(t, running);
  } else {
    fill(t.y, t.form.width * kQueries, 0);
  }
  const auto keys = [&](const KeyTile& tile, bool all) { forward_keys<W, T>(t, sight, tile, all, running); };
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

template <int W, class T>
void backward(const BackwardTile& t) {
  const Sight<W> sight(t.form, t.queries, t.keys.mask);
  if (t.far.elements.runs > 0) {
    backward_elements<W>(t);
  } else {
    fill(t.grad_q, t.form.width * kQueries, 0);
  }
  const auto keys = [&](const KeyTile& tile, bool all) { backward_keys<W, T>(t, sight, tile, all); };
  for_each_far_block(sight, t.far.blocks, t.form.keys, keys);
  for_each_tile(sight, keys);
}

template <int W, class T = float>
constexpr Kernels kernels_of() {
  return {.forward = attention::forward<W, T>,
          .backward = attention::backward<W, T>,
          .turn = attention::turn<W>,
          .turn_back = attention::turn_back<W>,
          .see_chunk = attention::see_chunk<W, float>,
          .see_chunk_bf16 = attention::see_chunk<W, bfloat16>,
          .join_chunks = attention::join_chunks<W>};
}

}  // namespace
}  // namespace tessera::cpu::attention

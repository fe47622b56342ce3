// Attention of few queries, as in generation. Rows of keys and values are read once from memory, where they lie, for all queries.
// Included like kernels.h.
#pragma once

#include "core/cpu/attention/arrays.h"
#include "core/cpu/attention/columns.h"
#include "core/cpu/attention/elements.h"
#include "core/cpu/attention/few_sight.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/attention/running.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::attention {
namespace {

// q . k of W keys.
template <int W, class T>
[[gnu::always_inline]] inline Vec<W> products_of(const T* q, const T* k, const std::int64_t* rows, std::int64_t width) {
  Vec<W> sums[W]{};
#pragma GCC unroll 4
  for (int j = 0; j < W; j += 4) {
    const T* row[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) row[i] = k + rows[j + i];
    for (std::int64_t c = 0; c < width; c += W) {
      const Vec<W> x = load<W>(q + c);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sums[j + i] += x * load<W>(row[i] + c);
    }
  }
  return sums_of<W>(sums);
}

// The keys and values of a head.
template <class T>
struct HeadOfKeys {
  const T *k, *v;
  std::int64_t v_step;
  float scale;
  std::int64_t width;
};

// Adds a block of keys to the sums of a query.
template <int W, class T>
[[gnu::always_inline]] inline void see(const T* q, const HeadOfKeys<T>& head, const Block<W>& block,
                                       const IntVec<W> (&seen)[kBlockOfKeys / W], const FewSums& sums) {
  constexpr int kVectors = kBlockOfKeys / W;
  const Vec<W> hidden = Vec<W>{} + kLowest;
  Vec<W> scores[kVectors], top = hidden;
#pragma GCC unroll 2
  for (int b = 0; b < kVectors; ++b) {
    scores[b] = products_of<W>(q, head.k, block.rows + b * W, head.width) * head.scale;
    const Vec<W> shown = seen[b] ? scores[b] : hidden;
    top = shown > top ? shown : top;  // a NaN enters by its exponential
  }
  const float before = *sums.top, here = largest_lane<W>(top), after = here > before ? here : before;
  alignas(64) float weights[kBlockOfKeys];
  Vec<W> total{};
#pragma GCC unroll 2
  for (int b = 0; b < kVectors; ++b) {
    const Vec<W> weight = seen[b] ? exp_below<W>(scores[b] - after) : Vec<W>{};
    total += weight;
    store<W>(weight, weights + b * W);
  }
  const float rescale = exp_below<W>(Vec<W>{} + (before - after))[0];
  const bool fresh = *sums.total == 0;
  *sums.top = after;
  *sums.total = *sums.total * rescale + lane_sum<W>(total);
  for_each_columns<W>(
      head.width, [&]<int V>(std::int64_t c) __attribute__((always_inline)) {
        Vec<W> y[V]{};
        const T* row = head.v + c;
        for (std::int64_t j = 0; j < block.count; ++j, row += head.v_step) {
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) y[v] += weights[j] * load<W>(row + v * W);
        }
        if (!fresh) {
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) y[v] += rescale * load<W>(sums.y + c + v * W);
        }
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) store<W>(y[v], sums.y + c + v * W);
      });
}

// Brings keys or values of a head into the cache while others are computed with.
template <class T>
void prefetch_rows(const HeadRows<T>& x, std::int64_t head, std::int64_t width, std::int64_t first, std::int64_t end) {
  constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(T));
  for (std::int64_t p = first; p < end; ++p) {
    for (std::int64_t c = 0; c < width; c += kLine) _mm_prefetch(x.row(p, head) + c, _MM_HINT_T0);
  }
}

// The rows that follow a head's block at `at`: those of the next head or, after the last head, the next block's of the first
// head.
template <class T>
void prefetch_next(const FewQueries<T>& o, std::int64_t at, std::int64_t head, std::int64_t end) {
  const bool last = head + 1 == o.form.kv_heads;
  const std::int64_t first = last ? at + kBlockOfKeys : at, next = last ? 0 : head + 1;
  prefetch_rows(o.k, next, o.form.width, first, lesser(first + kBlockOfKeys, end));
  prefetch_rows(o.v, next, o.form.width, first, lesser(first + kBlockOfKeys, end));
}

template <int W, class T>
void see_chunk(const FewQueries<T>& o, std::int64_t first, std::int64_t end, const FewSums& sums, std::int64_t step) {
  const AttentionForm& f = o.form;
  const std::int64_t group = f.group();
  Block<W> block;
  for (std::int64_t at = first; at < end; at += kBlockOfKeys) {
    sight_of(o, at, end, block);
    for (std::int64_t kv = 0; kv < f.kv_heads; ++kv) {
      const HeadOfKeys<T> head{o.k.row(at, kv), o.v.row(at, kv), o.v.position, static_cast<float>(f.scale), f.width};
      prefetch_next(o, at, kv, end);
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        for (std::int64_t i = 0; i < f.queries; ++i) {
          if (!block.some[i]) continue;
          const std::int64_t row = h * f.queries + i;
          see<W>(o.q.row(i, h), head, block, block.seen[i],
                 {sums.top + row * step, sums.total + row * step, sums.y + row * f.width});
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::cpu::attention

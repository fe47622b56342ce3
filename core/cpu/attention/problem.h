// The arguments of the attention kernels, the same for every instruction set. Queries of one head lie side by side, kQueries of
// them in the lanes of vectors, so that softmax is a matter of each lane, and rows of keys and values are read where they lie.
// Pairs that a sparse pattern keeps one by one are few in a vector: they are computed from rows of queries.
#pragma once

#include <cstdint>

#include "core/cpu/bf16_pair.h"
#include "core/cpu/fetch_ahead.h"
#include "core/half.h"
#include "core/ops/attention_math.h"
#include "core/ops/dropout_math.h"
#include "core/rng.h"

namespace tessera::cpu::attention {

inline constexpr std::int64_t kQueries = 64;  // of a tile
// Keys of a tile: a multiple of 4, for random words, and of the rows of sums that fill the registers.
inline constexpr std::int64_t kKeys = 48;
inline constexpr std::int64_t kLanes = 16;  // of the widest vector: rows of a head are padded with zeros to a multiple

struct Dropout {
  double rate = 0;
  std::uint32_t threshold = 0;
  RngStream stream = {};
  std::uint64_t step = 0;
};

// One head of keys and values in f32: [keys][pitch], zeros behind `width`.
struct Keys {
  const float* k;
  const float* v;
  std::int64_t pitch;
  const std::uint8_t* mask;  // [keys], 0: seen by no query; null: all are seen
};

// kQueries queries of one head, side by side in lanes. Lanes of [begin, end) exist; the others are zeros.
struct Queries {
  std::int64_t first;  // query of lane 0, below 0 where that does not exist
  std::int64_t begin, end;
  std::int64_t row;  // of lane 0 among all rows of probabilities
  const float* q;  // [width][kQueries], times the scale
  const float* rows;  // the same as [kQueries][pitch]
};

// Pairs beside the band of a sparse pattern, one by one: `runs` keys, ascending, and for each the lanes that see it.
struct FarElements {
  std::int64_t runs = 0;
  const std::uint16_t* keys = nullptr;  // [runs]
  const std::uint8_t* counts = nullptr;  // [runs]: of lanes
  const std::uint8_t* lanes = nullptr;  // of all runs, one after another
};

// The same by blocks of side x side: lanes of [r side, (r + 1) side) see the blocks [offsets[r], offsets[r + 1]) of keys.
struct FarBlocks {
  std::int64_t side = 0;  // 0: there are none
  std::int64_t offsets[kQueries / 16 + 1] = {};
  const std::uint16_t* keys = nullptr;  // ascending
};

struct Far {
  FarElements elements;
  FarBlocks blocks;
  float* rows;  // scratch [kQueries][pitch]
};

using Pair = Bf16Pair;

// What products in bf16 read in the place of keys, queries and gradients in f32. In a row: [rows][pitch / 2]. Down: neighbouring
// rows, [rows / 2][pitch], with zeros behind the last one.
struct PairedTile {
  Pair *k = nullptr, *v = nullptr;  // in a row
  Pair *k_down = nullptr, *v_down = nullptr;
  Pair *q = nullptr, *grad_y = nullptr;  // down, of those with queries in lanes
  Pair *q_down = nullptr, *grad_y_down = nullptr;  // of queries as rows
  Pair* scores = nullptr;  // scratch [3 kKeys][kQueries / 2]
};

struct ForwardTile {
  AttentionForm form;
  Dropout dropout;
  Keys keys;
  Queries queries;
  Far far;
  float* scores;  // scratch [2 kKeys][kQueries]
  float* y;  // [width][kQueries]
  float* log_sums;  // [kQueries]
  PairedTile paired;  // k, v_down, q and scores, where the kernels are those of bf16
  FetchAhead* ahead;  // what this tile writes afterwards, and what the next one reads
};

struct BackwardTile {
  AttentionForm form;
  Dropout dropout;
  Keys keys;
  Queries queries;
  Far far;
  const float* grad_y;  // [width][kQueries]
  const float* grad_y_rows;  // [kQueries][pitch]
  const float* log_sums;  // [kQueries]
  const float* inner;  // [kQueries]: sums of grad_y y
  float* scores;  // scratch [3 kKeys][kQueries]
  float* grad_q;  // [width][kQueries], written; to be multiplied by the scale
  float* grad_k;  // [keys][pitch], added to
  float* grad_v;
  PairedTile paired;  // all but v_down, where the kernels are those of bf16
  FetchAhead* ahead;  // what this tile writes afterwards, and what the next one reads
};

inline constexpr std::int64_t kFewQueries = 4;  // of a sequence; with eight the tiles are as fast
inline constexpr std::int64_t kBlockOfKeys = kLanes;

// Element c of a head's row lies at row(position, head)[c].
template <class T>
struct HeadRows {
  const T* at;
  std::int64_t position, head;  // steps
  [[gnu::always_inline]] const T* row(std::int64_t p, std::int64_t h) const { return at + p * position + h * head; }
};

// Up to kFewQueries queries of one sequence, of all heads, as they lie in memory; the width is a multiple of kLanes. A row is a
// query of a head: the (head * queries + query)-th.
template <class T>
struct FewQueries {
  AttentionForm form;
  HeadRows<T> q, k, v;
  const std::uint8_t* mask;  // [keys], 0: seen by no query; null: all are seen
};

// What rows have seen of a chunk of keys: the largest score, or the lowest float; the sum of exp(score - top), or 0; and, where
// that is not 0, that of exp(score - top) v, [rows][width].
struct FewSums {
  float *top, *total, *y;
};

// Sums of one row, of `count` chunks: those of y lie `step` apart.
struct ChunkSums {
  const float* y;
  std::int64_t step, count, width;
};

// The keys [first, end). Sums of all rows are read and updated: tops begin at the lowest float, totals at 0, y may be unset. Tops
// and totals of rows lie `step` apart.
template <class T>
using SeeChunk = void (*)(const FewQueries<T>& queries, std::int64_t first, std::int64_t end, const FewSums& sums,
                          std::int64_t step);

struct Kernels {
  void (*forward)(const ForwardTile& tile);
  void (*backward)(const BackwardTile& tile);
  // to [width][kQueries] from rows [kQueries][pitch], and back; whole vectors of rows are read and written.
  void (*turn)(const float* rows, std::int64_t pitch, std::int64_t width, float* to);
  void (*turn_back)(const float* from, std::int64_t width, float* rows, std::int64_t pitch);
  SeeChunk<float> see_chunk;
  SeeChunk<bfloat16> see_chunk_bf16;
  // tops and totals [chunks, rounded up to kLanes] of a row; the totals are overwritten; y [width]. Returns the log of
  // the sum of exp(scores), 0 where no key was seen.
  float (*join_chunks)(const float* tops, float* totals, const ChunkSums& chunks, float* y);
  // Make pairs, in a row and down (see PairedTile), of rows [count][pitch]: of their first `columns`, a multiple of kLanes. Null
  // except in kernels of bf16.
  void (*pair_rows)(const float* rows, std::int64_t count, std::int64_t columns, std::int64_t pitch, Pair* to) = nullptr;
  void (*pair_down)(const float* rows, std::int64_t count, std::int64_t columns, std::int64_t pitch, Pair* to) = nullptr;
};

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512Bf16Kernels;

const Kernels& kernels();  // of isa()
// For tensors of bf16: forward and backward multiply in bf16 and add in f32 where isa() and the processor have AVX512_BF16.
const Kernels& kernels_of_bf16();

}  // namespace tessera::cpu::attention

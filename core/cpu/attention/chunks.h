// How pairs of queries and keys that a sparse pattern keeps one by one are gone through: in runs that share a key, and these in
// chunks, whose scores the first-level cache holds. Included like kernels.h.
#pragma once

#include <cstdint>

#include "core/cpu/attention/problem.h"

namespace tessera::cpu::attention {
namespace {

inline constexpr std::int64_t kChunk = 2 * kQueries;  // elements, at most; a run has up to kQueries
static_assert(kChunk * kLanes + 4 * kChunk <= 2 * kKeys * kQueries, "scratch of a tile holds what a chunk needs");

// Some runs, and their elements.
struct Chunk {
  FarElements runs;
  std::int64_t elements;
};

template <class Body>
void for_each_chunk(const FarElements& far, const Body& body) {
  const std::uint8_t* lanes = far.lanes;
  for (std::int64_t first = 0, end = 0; first < far.runs; first = end) {
    std::int64_t elements = 0;
    while (end < far.runs && elements + far.counts[end] <= kChunk) elements += far.counts[end++];
    body(Chunk{{end - first, far.keys + first, far.counts + first, lanes}, elements});
    lanes += elements;
  }
}

// Calls body(key, lanes, their count, the run's first element in the chunk).
template <class Body>
[[gnu::always_inline]] inline void for_each_run(const Chunk& chunk, const Body& body) {
  std::int64_t at = 0;
  for (std::int64_t run = 0; run < chunk.runs.runs; ++run) {
    const std::int64_t count = chunk.runs.counts[run];
    body(std::int64_t{chunk.runs.keys[run]}, chunk.runs.lanes + at, count, at);
    at += count;
  }
}

// of_elements[i]: what the lane of element i has.
inline void take(const Chunk& chunk, const float* of_lanes, float* of_elements) {
  for (std::int64_t i = 0; i < chunk.elements; ++i) of_elements[i] = of_lanes[chunk.runs.lanes[i]];
}

}  // namespace
}  // namespace tessera::cpu::attention

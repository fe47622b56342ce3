// Queries as rows, and side by side in lanes. Included like kernels.h.
#pragma once

#include "core/cpu/attention/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::attention {
namespace {

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

}  // namespace
}  // namespace tessera::cpu::attention

// Transpositions between images and panels, and copies of parts of panels.
// Included only by kernels.h; W, the lanes of a vector, tells the instances apart.
#pragma once

#include <cstdint>

#include "core/cpu/sparse/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::sparse {
namespace {

template <int W>
void pack(const float* const* rows, std::int64_t positions, std::int64_t channels, float* to, std::int64_t pitch) {
  for (std::int64_t p = 0; p < positions; p += W) {
    const std::int64_t here = positions - p < W ? positions - p : W;
    std::int64_t c = 0;
    for (; c + W <= channels; c += W) {
      Vec<W> v[W];
      const auto row = [&](std::int64_t i) { return load<W>(rows[p + i] + c); };
      if (here == W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) v[i] = row(i);
      } else {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) v[i] = i < here ? row(i) : Vec<W>{};
      }
      transpose<W>(v);
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) store<W>(v[i], to + (c + i) * pitch + p);
    }
    for (; c < channels; ++c) {
      for (std::int64_t i = 0; i < W; ++i) to[c * pitch + p + i] = i < here ? rows[p + i][c] : 0.0F;
    }
  }
}

template <int W>
void copy(const Segment* segments, std::int64_t count, std::int64_t channels, std::int64_t from_pitch, float* to,
          std::int64_t to_pitch) {
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t s = 0; s < count; ++s) {
      const float* const from = segments[s].from + c * from_pitch;
      float* const row = to + c * to_pitch + segments[s].to;
      for (std::int64_t i = 0; i < segments[s].length; i += W) store<W>(load<W>(from + i), row + i);
    }
  }
}

template <int W>
void unpack(const float* from, std::int64_t pitch, std::int64_t positions, std::int64_t channels, bool relu, float* const* rows) {
  for (std::int64_t p = 0; p < positions; p += W) {
    const std::int64_t here = positions - p < W ? positions - p : W;
    std::int64_t c = 0;
    for (; c + W <= channels; c += W) {
      Vec<W> v[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) {
        v[i] = load<W>(from + (c + i) * pitch + p);
        if (relu) v[i] = v[i] < 0 ? Vec<W>{} : v[i];
      }
      transpose<W>(v);
      if (here == W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) store<W>(v[i], rows[p + i] + c);
      } else {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) {
          if (i < here) store<W>(v[i], rows[p + i] + c);
        }
      }
    }
    for (; c < channels; ++c) {
      for (std::int64_t i = 0; i < here; ++i) {
        const float value = from[c * pitch + p + i];
        rows[p + i][c] = relu && value < 0 ? 0.0F : value;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::cpu::sparse

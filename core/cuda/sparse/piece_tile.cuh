// Tiles of pieces in shared memory. A tile has one row for each row or column of a piece.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/sparse/problem.h"

namespace tessera::cuda::sparse {

inline constexpr int kPositions = static_cast<int>(kPanelStep);  // positions of a tile
inline constexpr int kPitch = kPositions + 8;  // keeps rows aligned to 16 bytes, and puts neighbouring rows in other banks
inline constexpr int kWeightPitch = kPieceColumns + 2;  // keeps pairs of f32 aligned
inline constexpr int kWarps = kThreads / 32;

template <class T>
inline constexpr bool kOnTensorCores = sizeof(T) == 2;

// Row `row` of a tile, kPitch elements.
template <class T>
__device__ inline T* tile_row(std::byte* tile, int row) {
  return reinterpret_cast<T*>(tile) + row * kPitch;
}

// Copies kRows rows of panels into a tile, kPositions positions from `first` on. row_of(row) is null for rows of zeros.
template <class T, int kRows, class RowOf>
__device__ inline void stage_rows(std::byte* tile, std::int64_t first, const RowOf& row_of) {
  constexpr int kPacks = kPositions / kWidest<T>;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kPacks; i += kThreads) {
    const int row = i / kPacks, at = i % kPacks * kWidest<T>;
    const T* const from = row_of(row);
    Pack<T, kWidest<T>> pack = {};
    if (from != nullptr) pack = load_pack<kWidest<T>>(from + first + at);
    store_pack(tile_row<T>(tile, row) + at, pack);
  }
}

// Copies the pixels that kPositions positions from `first` on read at `count` elements from `element` on. Zeros fill the rest.
template <class T, bool kGathers>
__device__ inline void stage_source(std::byte* tile, const Elements& elements, const Sources& sources, const T* x,
                                    std::int64_t x_pitch, std::int32_t element, int count, std::int64_t first) {
  const auto place_of = [&](int k) {
    const std::int32_t column = elements.indices[element + k];
    const std::int32_t tap = column / elements.width;
    return int2{tap, column - tap * elements.width};
  };
  if constexpr (!kGathers) {
    stage_rows<T, kPieceColumns>(tile, first, [&](int k) { return k < count ? x + place_of(k).y * x_pitch : nullptr; });
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < kPieceColumns * kPositions; i += kThreads) {
      const int k = i / kPositions, position = i % kPositions;
      T value = {};
      if (k < count) {
        const int2 place = place_of(k);
        value = x[place.y * x_pitch + sources.pixels[place.x * sources.pitch + first + position]];
      }
      tile_row<T>(tile, k)[position] = value;
    }
  }
}

}  // namespace tessera::cuda::sparse

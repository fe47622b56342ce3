// Tiles of pieces in shared memory, and how a block multiplies them: on tensor cores in half types, in registers otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/compute_type.h"
#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/mma_step.cuh"
#include "core/cuda/sparse/problem.h"

namespace tessera::cuda::sparse {

inline constexpr int kPositions = static_cast<int>(kPanelStep);  // of a tile
inline constexpr int kPitch = kPositions + 8;  // whole accesses of 16 bytes, and neighbouring rows in other banks
inline constexpr int kWeightPitch = kPieceColumns + 2;  // pairs of f32 stay aligned
inline constexpr int kWarps = kThreads / 32;

template <class T>
inline constexpr bool kOnTensorCores = sizeof(T) == 2;

// Row `row` of a tile, or behind the tiles' rows of x: [kPitch] elements each.
template <class T>
__device__ inline T* tile_row(std::byte* tile, int row) {
  return reinterpret_cast<T*>(tile) + row * kPitch;
}

// kRows rows of panels into a tile, kPositions from `first` on; row_of(row) is null for rows of zeros.
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

// The pixels that kPositions positions from `first` on read at `count` elements from `element` on; zeros behind them.
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

// Sums [kPieceRows][kPositions] of weights [kPieceRows][kWeightPitch] times a tile [kPieceColumns][kPitch]: two rows and four
// positions of a thread.
template <class T, bool kHalf = kOnTensorCores<T>>
class Products {
 public:
  using Number = Compute<T>;

  __device__ void add(const Number* weights, std::byte* tile) {
#pragma unroll 8
    for (int k = 0; k < kPieceColumns; ++k) {
      const auto x = Numbers<T, 4>::load(tile_row<T>(tile, k) + position());
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Number weight = weights[(row() + 8 * half) * kWeightPitch + k];
#pragma unroll
        for (int j = 0; j < 4; ++j) sums_[half][j] += weight * x.at[j];
      }
    }
  }

  // use(row, position, sum)
  template <class Use>
  __device__ void for_each(const Use& use) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < 4; ++j) use(row() + 8 * half, position() + j, sums_[half][j]);
    }
  }

 private:
  __device__ static int row() { return static_cast<int>(threadIdx.x) / 16; }
  __device__ static int position() { return static_cast<int>(threadIdx.x) % 16 * 4; }

  Number sums_[2][4] = {};
};

// A warp has all rows and two tiles of eight positions.
template <class T>
class Products<T, true> {
 public:
  __device__ void add(const float* weights, std::byte* tile) {
#pragma unroll
    for (int first = 0; first < kPieceColumns; first += 16) {
      unsigned a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = MmaStep<T>::right(weights + (group() + i % 2 * 8) * kWeightPitch + first, lane(), i / 2);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        unsigned b[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const T* const upper = tile_row<T>(tile, first + 8 * half + 2 * lane()) + position(n) + group();
          b[half] = upper[0].bits() | static_cast<unsigned>(upper[kPitch].bits()) << 16;
        }
        MmaStep<T>::run(sums_[n], a, b);
      }
    }
  }

  template <class Use>
  __device__ void for_each(const Use& use) const {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) use(group() + i / 2 * 8, position(n) + 2 * lane() + i % 2, sums_[n][i]);
    }
  }

 private:
  static constexpr int kTiles = kPositions / kWarps / 8;
  __device__ static int group() { return static_cast<int>(threadIdx.x) % 32 / 4; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 4; }
  __device__ static int position(int n) { return (static_cast<int>(threadIdx.x) / 32 * kTiles + n) * 8; }

  float sums_[kTiles][4] = {};
};

// Sums [kPieceRows][kPieceColumns] over the positions of tiles [kPieceRows][kPitch] and [kPieceColumns][kPitch]: four rows and a
// column of a thread.
template <class T, bool kHalf = kOnTensorCores<T>>
class Dots {
 public:
  using Number = Compute<T>;

  __device__ void add(std::byte* left, std::byte* right) {
    for (int p = 0; p < kPositions; p += 4) {
      const auto x = Numbers<T, 4>::load(tile_row<T>(right, column()) + p);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const auto y = Numbers<T, 4>::load(tile_row<T>(left, row(i)) + p);
#pragma unroll
        for (int j = 0; j < 4; ++j) sums_[i] += y.at[j] * x.at[j];
      }
    }
  }

  // use(row, column, sum)
  template <class Use>
  __device__ void for_each(const Use& use) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) use(row(i), column(), sums_[i]);
  }

 private:
  static constexpr int kRows = kPieceRows / kWarps;
  __device__ static int column() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int row(int i) { return static_cast<int>(threadIdx.x) / 32 * kRows + i; }

  Number sums_[kRows] = {};
};
static_assert(kPieceColumns == 32 && kPieceColumns == 8 * kWarps, "a lane, and a warp's eight, for each column");

// A warp has all rows and eight columns.
template <class T>
class Dots<T, true> {
 public:
  __device__ void add(std::byte* left, std::byte* right) {
#pragma unroll
    for (int first = 0; first < kPositions; first += 16) {
      unsigned a[4], b[2];
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = MmaStep<T>::left(tile_row<T>(left, group() + i % 2 * 8) + first, lane(), i / 2);
#pragma unroll
      for (int i = 0; i < 2; ++i) b[i] = MmaStep<T>::left(tile_row<T>(right, warp() * 8 + group()) + first, lane(), i);
      MmaStep<T>::run(sums_, a, b);
    }
  }

  template <class Use>
  __device__ void for_each(const Use& use) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) use(group() + i / 2 * 8, warp() * 8 + 2 * lane() + i % 2, sums_[i]);
  }

 private:
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int group() { return static_cast<int>(threadIdx.x) % 32 / 4; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 4; }

  float sums_[4] = {};
};

}  // namespace tessera::cuda::sparse

// How a block multiplies a piece's weights by a tile: on tensor cores in half types, in registers otherwise.
#pragma once

#include <cstddef>

#include "core/compute_type.h"
#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/mma_step.cuh"
#include "core/cuda/sparse/piece_tile.cuh"

namespace tessera::cuda::sparse {

// Sums [kPieceRows][kPositions] of weights [kPieceRows][kWeightPitch] times a tile [kPieceColumns][kPitch]. Each thread has two
// rows and four positions.
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

  // Calls use(row, position, sum) for each sum of this thread.
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

// On tensor cores, each warp has all rows and two tiles of eight positions.
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

}  // namespace tessera::cuda::sparse

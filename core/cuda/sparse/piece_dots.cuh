// How a block sums products of two tiles over their positions: on tensor cores in half types, in registers otherwise.
#pragma once

#include <cstddef>

#include "core/compute_type.h"
#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/mma_step.cuh"
#include "core/cuda/sparse/piece_tile.cuh"

namespace tessera::cuda::sparse {

// Sums [kPieceRows][kPieceColumns] over the positions of tiles [kPieceRows][kPitch] and [kPieceColumns][kPitch]. Each thread has
// four rows and one column.
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

  // Calls use(row, column, sum) for each sum of this thread.
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

// On tensor cores, each warp has all rows and eight columns.
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

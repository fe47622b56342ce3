// How a lane of a subwarp reads and writes panels: its positions in one strip after another.
#pragma once

#include <cstdint>

#include "core/compute_type.h"
#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/sparse/problem.h"

namespace tessera::cuda::sparse {

template <class T>
inline constexpr int kEach = kWidest<T>;  // positions of a lane: one access of 16 bytes
template <class T>
inline constexpr int kStrip = kLanes* kEach<T>;  // positions of a subwarp

// Without a gather, positions are pixels, and a lane reads neighbouring positions in one access. With a gather, each position
// looks up its pixel. Neighbouring positions then belong to neighbouring lanes, so that a subwarp's reads coalesce.
template <class T, bool kGathers>
class Reader {
 public:
  using Some = Numbers<T, kEach<T>>;

  __device__ Reader(const Sources& sources, int lane) : sources_(sources), lane_(lane) {}

  __device__ void go_to(std::int64_t strip) {
    first_ = strip * kStrip<T> + (kGathers ? lane_ : lane_ * kEach<T>);
    tap_ = -1;
  }

  // Reads a row of the source at the pixels that the positions use at `tap`.
  __device__ Some read(const T* row, int tap) {
    if constexpr (!kGathers) {
      return Some::load(row + first_);
    } else {
      find(tap);
      Some some;
#pragma unroll
      for (int j = 0; j < kEach<T>; ++j) some.at[j] = number_of(row[pixels_[j]]);
      return some;
    }
  }

  // Reads a row of the result at the positions themselves.
  __device__ Some own(const T* row) const {
    if constexpr (!kGathers) {
      return Some::load(row + first_);
    } else {
      Some some;
#pragma unroll
      for (int j = 0; j < kEach<T>; ++j) some.at[j] = number_of(row[first_ + j * kLanes]);
      return some;
    }
  }
  __device__ void store(T* row, const Some& some) const {
    if constexpr (!kGathers) {
      some.store(row + first_);
    } else {
#pragma unroll
      for (int j = 0; j < kEach<T>; ++j) row[first_ + j * kLanes] = element_of<T>(some.at[j]);
    }
  }

 private:
  // The elements of a row are sorted by tap, so the tap rarely changes.
  __device__ void find(int tap) {
    if (tap == tap_) return;
    tap_ = tap;
    const std::int32_t* const from = sources_.pixels + tap * sources_.pitch + first_;
#pragma unroll
    for (int j = 0; j < kEach<T>; ++j) pixels_[j] = from[j * kLanes];
  }

  Sources sources_;
  int lane_;
  std::int64_t first_ = 0;
  int tap_ = -1;
  std::int32_t pixels_[kGathers ? kEach<T> : 1] = {};
};

}  // namespace tessera::cuda::sparse

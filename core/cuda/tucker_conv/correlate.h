// Gradients of the three weights of a Tucker-2 convolution as correlations of two images,
// weight[a, tap, b] = sum over pixels of left[pixel, a] right[pixel * stride + tap - padding, b]: the out factor's of grad_y with
// the core's output, the core's of its output's gradient with its input, the in factor's of the core input's gradient with x.
// A block takes 32 channels of `left` with nine "slots" of 32 channels of `right`: nine taps, or, where there is one tap, nine
// slices of channels. It walks tiles of 4 x 8 pixels, every gridDim.x-th, and stores its sums as one partial result; the partial
// results are added in their order afterwards. Its phases:
//   clear             sums of zero
//   for every tile    load the next one, wait for this one, BARRIER, multiply, BARRIER: pipelined() of block.h
//   store             the partial result in global memory
#pragma once

#include "core/cuda/tucker_conv/block.h"
#include "core/cuda/tucker_conv/ffma.h"
#include "core/cuda/tucker_conv/kernels.h"
#include "core/cuda/tucker_conv/mma.h"

namespace tessera::cuda {

// Job and group of block row `index` of the grid.
template <class T>
TESSERA_INLINE int find_job(const CorrelateArguments<T>& args, int& index) {
  for (int job = 0; job < args.count - 1; ++job) {
    const int groups = args.jobs[job].shape.groups();
    if (index < groups) return job;
    index -= groups;
  }
  return args.count - 1;
}

// Which part of the grid a block is: a job, a group of its slots, every walkers-th tile from `walker` on.
struct CorrelateBlock {
  int job;
  SlotGroup group;
  int walker, walkers;
};

template <class Math, class Block>
class Correlate {
  using T = typename Math::Storage;
  using State = CorrelateState;

 public:
  TESSERA_INLINE Correlate(Block& block, const CorrelateArguments<T>& args, const CorrelateBlock& of, char* shared)
      : block_(block), args_(args), job_(args.jobs[of.job]), shape_(job_.shape), group_(of.group), walker_(of.walker),
        walkers_(of.walkers), window_w_(correlation_window(shape_.columns, kCorrelateW)), pitch_(shape_.pitch_right()),
        shared_(shared) {}

  TESSERA_INLINE void run() {
    block_.each([&](int, State& state) {
      state.clear();
      TESSERA_UNROLL
      for (int slot = 0; slot < kSlots; ++slot) state.offset[slot] = slot_offset(slot);
    });
    const std::int64_t tiles = shape_.tiles();
    const int mine = tiles > walker_ ? static_cast<int>((tiles - walker_ + walkers_ - 1) / walkers_) : 0;
    const auto load = [&](int thread, int step, int buffer) {
      load_tile(thread, walker_ + std::int64_t{step} * walkers_, buffer);
    };
    pipelined(block_, mine, load, [&](int thread, State& state, int, int buffer) {
      Math::multiply(thread, state, left(buffer), right(buffer), shape_.rows.stride * window_w_ * pitch_,
                     shape_.columns.stride * pitch_);
      if (stores_bias() && thread < kSliceOfB) add_bias(thread, state, left(buffer));
    });
    block_.each([&](int thread, State& state) { store(thread, state); });
  }

 private:
  TESSERA_INLINE T* left(int buffer) const { return reinterpret_cast<T*>(shared_) + buffer * kCorrelatePixels * kPitchOfA; }
  TESSERA_INLINE T* right(int buffer) const {
    return reinterpret_cast<T*>(shared_) + 2 * kCorrelatePixels * kPitchOfA + buffer * shape_.right_elements();
  }
  TESSERA_INLINE bool stores_bias() const { return job_.sums_left && group_.b0 == 0 && group_.tap0 == 0; }

  TESSERA_INLINE int slot_offset(int slot) const {
    if (slot >= group_.slots) return 0;
    if (shape_.by_slice()) return slot * kSliceOfB;
    const int tap = group_.tap0 + slot;
    return (tap / shape_.columns.kernel * window_w_ + tap % shape_.columns.kernel) * pitch_;
  }

  TESSERA_INLINE void load_tile(int thread, std::int64_t tile, int buffer) const {
    const CorrelationTile at = shape_.tile_at(tile);
    const CoreAxis& rows = shape_.rows;
    const CoreAxis& columns = shape_.columns;
    const StagedRows<T> pixels{.to = left(buffer), .pitch = kPitchOfA, .rows = kCorrelatePixels, .columns = kSliceOfB,
                               .begin = group_.a0, .end = shape_.a, .vector = job_.vector_left, .any_valid = job_.left};
    load_rows(thread, pixels, [&](int p) {
      const int i = at.first_h + p / kCorrelateW;
      const int j = at.first_w + p % kCorrelateW;
      if (i >= rows.outs || j >= columns.outs) return static_cast<const T*>(nullptr);
      return job_.left + ((std::int64_t{at.image} * rows.outs + i) * columns.outs + j) * shape_.a;
    });
    const int window = correlation_window(rows, kCorrelateH) * window_w_;
    const StagedRows<T> reads{.to = right(buffer), .pitch = pitch_, .rows = window, .columns = shape_.slices() * kSliceOfB,
                              .begin = group_.b0, .end = shape_.b, .vector = job_.vector_right, .any_valid = job_.right};
    load_rows(thread, reads, [&](int r) {
      const int y = at.first_h * rows.stride - rows.padding + r / window_w_;
      const int x = at.first_w * columns.stride - columns.padding + r % window_w_;
      // What no window reaches may never have been written.
      if (y < 0 || y >= reached(rows) || x < 0 || x >= reached(columns)) return static_cast<const T*>(nullptr);
      return job_.right + ((std::int64_t{at.image} * rows.image + y) * columns.image + x) * shape_.b;
    });
  }

  TESSERA_INLINE static void add_bias(int thread, State& state, const T* left) {
    for (int p = 0; p < kCorrelatePixels; ++p) state.bias += widen(left[p * kPitchOfA + thread]);
  }

  TESSERA_INLINE void store(int thread, const State& state) {
    float* const partial = args_.partials + walker_ * args_.partial_size;
    const int taps = shape_.rows.kernel * shape_.columns.kernel;
    TESSERA_UNROLL
    for (int slot = 0; slot < kSlots; ++slot) {
      if (slot >= group_.slots) continue;
      const int tap = shape_.by_slice() ? 0 : group_.tap0 + slot;
      const int b0 = shape_.by_slice() ? group_.b0 + slot * kSliceOfB : group_.b0;
      TESSERA_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int a = group_.a0 + Math::row(thread, e);
        const int b = b0 + Math::column(thread, e);
        if (a >= shape_.a || b >= shape_.b) continue;
        partial[job_.begin + (std::int64_t{a} * taps + tap) * shape_.b + b] = state.sum[slot][e];
      }
    }
    if (stores_bias() && thread < kSliceOfB && group_.a0 + thread < shape_.a) {
      partial[args_.bias_begin + group_.a0 + thread] = state.bias;
    }
  }

  Block& block_;
  const CorrelateArguments<T>& args_;
  const Correlation<T>& job_;
  const CorrelationShape& shape_;
  SlotGroup group_;
  int walker_, walkers_, window_w_, pitch_;
  char* shared_;
};

}  // namespace tessera::cuda

// The tiles that the core convolution's kernels are built for, the sizes that follow from one, and the way from a tile's place in
// its list, known at run time, to the template argument. The kernels, the planner and a walk on the host read the same numbers.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "core/support/rounding.h"

namespace tessera::cuda::core_conv {

inline constexpr int kTaps = 3;  // most rows and columns of a kernel
inline constexpr int kOutLanes = 8;  // neighbouring threads of neighbouring output channels: a quarter of a warp reads 128 bytes
inline constexpr int kBanks = 32;
inline constexpr int kRegisters = 65536;  // of a processor

// A block of threads owns columns x (strips * rows) pixels of kOutLanes * outs channels of the result. A thread owns `rows`
// pixels one above the other, so that input it holds in registers serves all rows of the kernel, and every eighth channel.
// `groups` sets of threads own the same elements, each over its share of the `channels` that one stage brings to shared memory.
struct GatherTile {
  int columns, strips, rows, outs, groups, channels;
};

// The smallest pitch of planes of quads, in floats, for which threads that copy the quads of one pixel write to different banks.
constexpr int plane_pitch(int floats, int planes) {
  const int want = planes > 1 ? kBanks / planes : 0;
  return round_up(floats - want, kBanks) + want;
}

// In floats unless said otherwise. Shared memory of a stage: input [quad of channels][row][column], then weights
// [row of the kernel][column of it][quad][output channel], in quads. Where pixels of the result are two columns apart, even
// columns stand before odd ones: neighbouring threads then read neighbouring quads.
struct GatherSizes {
  constexpr GatherSizes(GatherTile tile, int stride)
      : group_threads(kOutLanes * tile.columns * tile.strips),
        threads(group_threads * tile.groups),
        tile_rows(tile.strips * tile.rows),
        outs(kOutLanes * tile.outs),
        quads(tile.channels / 4),
        in_rows((tile_rows - 1) * stride + kTaps),
        in_columns((tile.columns - 1) * stride + kTaps),
        half_columns(ceil_div(in_columns, stride)),
        row_pitch(stride * half_columns * 4),
        input_plane(plane_pitch(in_rows * row_pitch, quads)),
        weight_plane(plane_pitch(outs * 4, quads)),
        input(quads * input_plane),
        stage(input + kTaps * kTaps * quads * weight_plane),
        sums(tile.rows * tile.outs),
        exchange((tile.groups - 1) * group_threads * sums),
        shared(2 * stage > exchange ? 2 * stage : exchange),
        window((tile.rows - 1) * stride + kTaps) {}

  int group_threads, threads, tile_rows, outs, quads;
  int in_rows, in_columns, half_columns, row_pitch, input_plane, weight_plane;
  int input, stage;  // `stage` is one of the two buffers
  int sums;  // of one thread
  int exchange;  // where groups leave their sums for the first
  int shared;
  int window;  // pixels of one column that a thread holds

  // What the kernel may use of each thread, so that `blocks` fit a processor; with less the compiler spills.
  constexpr int registers() const { return sums <= 16 ? 128 : 168; }
  constexpr int blocks() const { return kRegisters / (threads * registers()); }
  constexpr int input_copies() const { return in_rows * in_columns * quads; }  // of 16 bytes
  constexpr int weight_copies() const { return kTaps * kTaps * outs * quads; }  // of 16 bytes
};

// Sizes 7 and 14 divide the images of ImageNet networks, 8 and 16 those of CIFAR networks; the small ones are for images that
// would leave most processors without a block.
inline constexpr std::array<GatherTile, 11> kFullTiles{{
    {.columns = 14, .strips = 2, .rows = 7, .outs = 4, .groups = 1, .channels = 8},
    {.columns = 14, .strips = 2, .rows = 4, .outs = 4, .groups = 1, .channels = 8},
    {.columns = 16, .strips = 2, .rows = 4, .outs = 4, .groups = 1, .channels = 8},
    {.columns = 8, .strips = 4, .rows = 4, .outs = 8, .groups = 1, .channels = 8},
    {.columns = 8, .strips = 2, .rows = 4, .outs = 4, .groups = 1, .channels = 8},
    {.columns = 7, .strips = 1, .rows = 7, .outs = 4, .groups = 4, .channels = 16},
    {.columns = 7, .strips = 1, .rows = 4, .outs = 4, .groups = 4, .channels = 16},
    {.columns = 8, .strips = 1, .rows = 4, .outs = 2, .groups = 4, .channels = 16},
    {.columns = 8, .strips = 1, .rows = 2, .outs = 2, .groups = 4, .channels = 16},
    {.columns = 7, .strips = 1, .rows = 2, .outs = 2, .groups = 8, .channels = 32},
    {.columns = 7, .strips = 1, .rows = 2, .outs = 1, .groups = 4, .channels = 32},
}};
// For a step of two pixels and for kernels with less than 3x3 taps, which those of a transposed convolution by two are.
inline constexpr std::array<GatherTile, 4> kOtherTiles{{
    {.columns = 14, .strips = 2, .rows = 4, .outs = 4, .groups = 1, .channels = 8},
    {.columns = 8, .strips = 2, .rows = 4, .outs = 4, .groups = 1, .channels = 8},
    {.columns = 7, .strips = 1, .rows = 4, .outs = 4, .groups = 4, .channels = 16},
    {.columns = 8, .strips = 1, .rows = 2, .outs = 2, .groups = 4, .channels = 16},
}};

constexpr GatherTile gather_tile(bool full, int stride, int index) {
  const auto at = static_cast<std::size_t>(index);
  return full && stride == 1 ? kFullTiles[at] : kOtherTiles[at];
}

// The gradient of the weights: a block owns 4 * out_quads x 4 * in_quads channels for all taps, a thread 4 x 4 of them for one
// row of the kernel. A stage brings rows x columns pixels.
struct WeightTile {
  int out_quads, in_quads, rows, columns;
};

struct WeightSizes {
  constexpr WeightSizes(WeightTile tile, int stride)
      : threads(tile.out_quads * tile.in_quads * kTaps),
        outs(4 * tile.out_quads),
        ins(4 * tile.in_quads),
        in_rows((tile.rows - 1) * stride + kTaps),
        in_columns((tile.columns - 1) * stride + kTaps),
        input(in_rows * in_columns * ins),
        stage(input + tile.rows * tile.columns * outs),
        shared(2 * stage) {}

  int threads, outs, ins, in_rows, in_columns, input, stage, shared;

  constexpr int registers() const { return 128; }
  constexpr int blocks() const { return kRegisters / (threads * registers()); }
};

inline constexpr std::array<WeightTile, 4> kWeightTiles{{
    {.out_quads = 8, .in_quads = 8, .rows = 4, .columns = 8},
    {.out_quads = 8, .in_quads = 8, .rows = 7, .columns = 7},
    {.out_quads = 8, .in_quads = 8, .rows = 2, .columns = 14},
    {.out_quads = 4, .in_quads = 8, .rows = 2, .columns = 8},
}};

// Calls f.operator()<index>() for an index below kCount.
template <std::size_t kCount, class F>
void visit_index(int index, F&& f) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    ((kIndex == index ? f.template operator()<kIndex>() : void()), ...);
  }
  (std::make_integer_sequence<int, static_cast<int>(kCount)>());
}

// Calls f.operator()<kList[index]>().
template <const auto& kList, class F>
void visit_tile(int index, F&& f) {
  visit_index<kList.size()>(index, [&]<int kIndex>() { f.template operator()<kList[static_cast<std::size_t>(kIndex)]>(); });
}

}  // namespace tessera::cuda::core_conv

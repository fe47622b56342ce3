// The kernel of one pass of a fused Tucker-2 convolution (geometry.h). A block owns tile_h x tile_w outputs of one class of one
// image and runs, on all its threads:
//   narrow_image()   sums = x in_factor under the outputs and their halo, wide channels staged in slices of 32; stored in shared
//                    memory (or, without an in factor, copy_image(): x itself)
//   convolve_core()  sums = that image * core; stored in shared memory (without an out factor: in y)
//   widen_image()    sums = that image out_factor; bias, residual and rectifier added, stored in y
// Each product is pipelined(): load slice 0; then for every slice: load the next one, wait for this one, BARRIER, multiply,
// BARRIER. There is no other barrier: what a phase stores in shared memory is read behind the first barrier of the next one. Both
// narrow images are stored in global memory too where the arguments ask for it, each pixel by the tile that owns it.
#pragma once

#include "core/cuda/tucker_conv/chain_tile.h"
#if TESSERA_KERNELS
#include "core/cuda/kernel/launch.cuh"
#endif

namespace tessera::cuda {

template <class Math, class Block>
TESSERA_INLINE void narrow_image(ChainTile<Math, Block>& c) {
  using T = typename Math::Storage;
  using State = typename Math::State;
  for (int m0 = 0; m0 < c.window(); m0 += Math::kShape.rows) {
    for (int n0 = 0; n0 < c.shape.narrow_in; n0 += Math::kShape.columns) {
      c.start([&](int row) { return row * c.at.pitch_left; });
      const auto load = [&](int thread, int slice, int buffer) {
        const StagedRows<T> pixels{.to = c.left(buffer), .pitch = c.at.pitch_left, .rows = Math::kShape.rows, .columns = kSlice,
                                   .begin = slice * kSlice, .end = c.shape.wide_in, .vector = c.args.vector_x,
                                   .any_valid = c.args.x};
        load_rows(thread, pixels, [&](int row) -> const T* {
          const std::int64_t pixel = c.pixel_in(m0 + row);
          return pixel >= 0 ? c.args.x + pixel * c.shape.wide_in : nullptr;
        });
        const WeightRows weights{.first = c.args.in_factor, .distance = c.shape.wide_in, .rows = c.shape.narrow_in,
                                 .channels = c.shape.wide_in, .vector = c.args.vector_in};
        c.load_weights(thread, buffer, weights, n0, slice * kSlice);
      };
      pipelined(c.block, ceil_div(c.shape.wide_in, kSlice), load, [&](int thread, State& state, int slice, int buffer) {
        Math::multiply(thread, state, c.left(buffer), c.right(buffer), c.at.pitch_right,
                       c.depth(c.shape.wide_in, slice * kSlice));
      });
      c.block.each([&](int thread, State& state) { c.store_narrow_in(thread, state, m0, n0); });
    }
  }
}

// Arrives with the first slice of the core.
template <class Math, class Block>
TESSERA_INLINE void copy_image(ChainTile<Math, Block>& c) {
  using T = typename Math::Storage;
  c.block.each([&](int thread, typename Math::State&) {
    const StagedRows<T> pixels{.to = c.narrow_in(), .pitch = c.at.pitch_in, .rows = c.window(),
                               .columns = round_up(c.shape.narrow_in, kChannelUnit), .begin = 0, .end = c.shape.narrow_in,
                               .vector = c.args.vector_x, .any_valid = c.args.x};
    load_rows(thread, pixels, [&](int r) -> const T* {
      const std::int64_t pixel = c.pixel_in(r);
      return pixel >= 0 ? c.args.x + pixel * c.shape.narrow_in : nullptr;
    });
  });
}

// A slice is some channels of one tap. Without taps, as a class of a transposed core may be, all sums are zero.
template <class Math, class Block>
TESSERA_INLINE void convolve_core(ChainTile<Math, Block>& c) {
  using State = typename Math::State;
  const int slices_a_tap = ceil_div(c.shape.narrow_in, kSlice);
  const int slices = c.rows.taps * c.columns.taps * slices_a_tap;
  for (int m0 = 0; m0 < c.outputs(); m0 += Math::kShape.rows) {
    for (int n0 = 0; n0 < c.shape.narrow_out; n0 += Math::kShape.columns) {
      c.start([&](int row) { return c.window_offset(m0 + row); });
      const auto load = [&](int thread, int slice, int buffer) {
        const int a = slice / slices_a_tap / c.columns.taps;
        const int b = slice / slices_a_tap % c.columns.taps;
        const int tap = (c.rows.tap_begin + a * c.rows.tap_step) * c.shape.columns.core.kernel + c.columns.tap_begin +
                        b * c.columns.tap_step;
        const WeightRows weights{.first = c.args.core + std::int64_t{tap} * c.shape.narrow_in,
                                 .distance = std::int64_t{c.shape.taps()} * c.shape.narrow_in, .rows = c.shape.narrow_out,
                                 .channels = c.shape.narrow_in, .vector = c.args.vector_core};
        c.load_weights(thread, buffer, weights, n0, slice % slices_a_tap * kSlice);
      };
      pipelined(c.block, slices, load, [&](int thread, State& state, int slice, int buffer) {
        const int begin = slice % slices_a_tap * kSlice;
        const int tap = slice / slices_a_tap;
        const int offset = (tap / c.columns.taps * c.window_w + tap % c.columns.taps) * c.at.pitch_in + begin;
        Math::multiply(thread, state, c.narrow_in() + offset, c.right(buffer), c.at.pitch_right,
                       c.depth(c.shape.narrow_in, begin));
      });
      c.block.each([&](int thread, State& state) { c.store_narrow_out(thread, state, m0, n0); });
    }
  }
}

template <class Math, class Block>
TESSERA_INLINE void widen_image(ChainTile<Math, Block>& c) {
  using State = typename Math::State;
  for (int m0 = 0; m0 < c.outputs(); m0 += Math::kShape.rows) {
    for (int n0 = 0; n0 < c.shape.wide_out; n0 += Math::kShape.columns) {
      c.start([&](int row) { return m0 + row < c.outputs() ? (m0 + row) * c.at.pitch_out : 0; });
      const auto load = [&](int thread, int slice, int buffer) {
        const WeightRows weights{.first = c.args.out_factor, .distance = c.shape.narrow_out, .rows = c.shape.wide_out,
                                 .channels = c.shape.narrow_out, .vector = c.args.vector_out};
        c.load_weights(thread, buffer, weights, n0, slice * kSlice);
      };
      pipelined(c.block, ceil_div(c.shape.narrow_out, kSlice), load, [&](int thread, State& state, int slice, int buffer) {
        Math::multiply(thread, state, c.narrow_out() + slice * kSlice, c.right(buffer), c.at.pitch_right,
                       c.depth(c.shape.narrow_out, slice * kSlice));
      });
      c.block.each([&](int thread, State& state) {
        TESSERA_UNROLL
        for (int i = 0; i < Math::kTileRows; ++i) {
          const std::int64_t pixel = c.pixel_out(m0 + Math::row(thread, i));
          TESSERA_UNROLL
          for (int j = 0; j < Math::kTileColumns; ++j) c.store_y(pixel, n0 + Math::column(thread, j), Math::value(state, i, j));
        }
      });
    }
  }
}

// Block `index` of the grid. All branches here are the same for all its threads.
template <class Math, class Block>
TESSERA_INLINE void run_chain(Block& block, const ChainArguments<typename Math::Storage>& arguments, std::int64_t index,
                              char* shared) {
  ChainTile<Math, Block> c(block, arguments, index, shared);
  if (c.empty()) return;
  if (c.rows.taps > 0 && c.columns.taps > 0) {
    if (c.shape.has_in) narrow_image(c);
    else copy_image(c);
  }
  if (c.args.y == nullptr && c.args.narrow_out == nullptr) return;
  convolve_core(c);
  if (c.shape.has_out && c.args.y != nullptr) widen_image(c);
}

#if TESSERA_KERNELS
template <class Math>
__global__ void __launch_bounds__(kBlockThreads, resident_by_registers(block_shape<Math>()))
    tucker_chain(const __grid_constant__ ChainArguments<typename Math::Storage> args) {
  DeviceBlock<typename Math::State> block;
  run_chain<Math>(block, args, blockIdx.x, dynamic_shared<char>());
}

template <class Math>
bool launch_chain_if(const ChainArguments<typename Math::Storage>& args, const BlockShape& block, Device device) {
  if (block.rows != Math::kShape.rows || block.columns != Math::kShape.columns) return false;
  const LaunchShape shape{dim3(static_cast<unsigned>(args.shape.grid().blocks())), dim3(kBlockThreads),
                          static_cast<std::size_t>(chain_layout(args.shape, block).total)};
  launch("tucker_conv", device, shape, tucker_chain<Math>, args);
  return true;
}

// Launches the kernel, among `Maths`, whose block shape is `block`.
template <class T, class... Maths>
void launch_chain(const ChainArguments<T>& args, const BlockShape& block, Device device) {
  const bool launched = (launch_chain_if<Maths>(args, block, device) || ...);
  TESSERA_CHECK(launched, InternalError, "tucker_conv: no kernel for blocks of ", block.rows, " x ", block.columns);
}
#endif

}  // namespace tessera::cuda

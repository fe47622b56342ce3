// y = A^T [(G g G^T) . (B^T d B)] A over tiles of 4x4 outputs: 36 products of [tiles, in] and [in, out], one for each element of
// a transformed tile. The gradient of the filters is G^T [(A grad_y A^T) . (B^T d B)] G summed over tiles. Included only by the
// files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/winograd/filters.h"
#include "core/cpu/winograd/products.h"
#include "core/cpu/winograd/tiles.h"

namespace tessera::cpu::winograd {
namespace {

template <int W, class T>
void forward(const Problem& p, const Block& block, const T* x, const float* u, const Epilogue& epilogue, T* y) {
  const std::int64_t depth = padded<W>(p.x.channels);
  const std::int64_t width = padded<W>(p.y.channels);
  const std::int64_t step = block.rows * W;
  float* const v = block.scratch;
  float* const m = v + kPositions * block.stride(depth);
  transform_tiles<W, kTile>(p, p.x, x, block, p.pad_h, p.pad_w, InputTransform{}, v);
  for (int position = 0; position < kPositions; ++position) {
    const float* const from = v + position * block.stride(depth);
    const float* const filter = u + position * p.x.channels * width;
    float* const to = m + position * block.stride(width);
    for_each_panel<W>(width, [&](std::int64_t k, auto vectors) {
      constexpr int kRowsNow = kRows<W, vectors>;
      for (std::int64_t t = 0; t < block.rows; t += kRowsNow) {
        multiply<W, kRowsNow, vectors>(from + t * W, filter + k, width, p.x.channels, step, to + k * block.rows + t * W);
      }
    });
  }
  for (std::int64_t t = 0; t < block.count; ++t) {
    write_tile<W>(p, p.corner(block.first + t), m + t * W, block.stride(width), block.rows, epilogue, y);
  }
}

// Adds the block's share to `u` [position][padded in][padded out].
template <int W, class T>
void add_filter_grad(const Problem& p, const Block& block, const T* x, const T* grad_y, float* u) {
  const std::int64_t depth = padded<W>(p.x.channels);
  const std::int64_t width = padded<W>(p.y.channels);
  const std::int64_t step = block.rows * W;
  float* const v = block.scratch;
  float* const z = v + kPositions * block.stride(depth);
  transform_tiles<W, kTile>(p, p.x, x, block, p.pad_h, p.pad_w, InputTransform{}, v);
  transform_tiles<W, kOut>(p, p.y, grad_y, block, 0, 0, GradTransform{}, z);
  for (int position = 0; position < kPositions; ++position) {
    const float* const from = v + position * block.stride(depth);
    const float* const grad = z + position * block.stride(width);
    float* const to = u + position * depth * width;
    for_each_panel<W>(width, [&](std::int64_t k, auto vectors) {
      constexpr int kChannels = W / vectors;
      for (std::int64_t c = 0; c < depth; c += kChannels) {
        const float* const lanes = from + c / W * step + c % W;
        add_products<W, kChannels, vectors>(lanes, grad + k * block.rows, step, block.count, to + c * width + k, width);
      }
    });
  }
}

template <int W>
constexpr Kernels kernels_of() {
  return {W,
          {forward<W, float>, add_filter_grad<W, float>},
          {forward<W, bfloat16>, add_filter_grad<W, bfloat16>},
          filters<W>,
          turned_filters<W>,
          filter_grads<W>};
}

}  // namespace
}  // namespace tessera::cpu::winograd

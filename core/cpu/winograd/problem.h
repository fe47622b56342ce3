// The arguments of Winograd's kernels, the same for every instruction set. Functions here are always inline: of several copies
// with external linkage the linker would keep one, perhaps built for instructions that the processor lacks.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/half.h"

namespace tessera::cpu::winograd {

inline constexpr int kTile = 6;  // side of an input tile
inline constexpr int kOut = 4;  // of the outputs that it gives
inline constexpr int kFilter = 3;  // of a filter
inline constexpr int kPositions = kTile * kTile;

struct Image {
  std::int64_t h, w, channels;
};

// Corner of a tile, in pixels. It may be negative or beyond the image, at the border.
struct Corner {
  std::int64_t image, y, x;
};

// y = correlation of x with filters from x.channels to y.channels.
struct Problem {
  std::int64_t n;
  Image x, y;
  std::int64_t pad_h, pad_w;
  std::int64_t rows, columns;  // of tiles in an image

  [[gnu::always_inline]] std::int64_t tiles() const { return n * rows * columns; }
  [[gnu::always_inline]] Corner corner(std::int64_t tile) const {  // of the outputs
    const std::int64_t row = tile / columns;
    return {row / rows, row % rows * kOut, tile % columns * kOut};
  }
};

// Tiles [first, first + count) that are worked on together.
struct Block {
  std::int64_t first, count;
  std::int64_t rows;  // count, rounded up to what the products take at once
  float* scratch;  // kPositions * (stride(padded in) + stride(padded out)) elements
  const float* zeros;  // as many as an image has channels; the same bytes are zeros of bf16

  // Elements from one position of transformed tiles to the next. A power of two would put all positions of a tile into one set
  // of the first-level cache.
  [[gnu::always_inline]] std::int64_t stride(std::int64_t channels) const { return stride(rows, channels); }
  [[gnu::always_inline]] static std::int64_t stride(std::int64_t rows, std::int64_t channels) { return rows * channels + 16; }
};

struct Epilogue {
  const float* bias = nullptr;
  bool relu = false;
};

// Kernels for images of type T. Transformed values and products are f32.
template <class T>
struct ImageKernels {
  void (*forward)(const Problem& p, const Block& block, const T* x, const float* u, const Epilogue& epilogue, T* y);
  // Adds the block's share to u [position][padded in][padded out].
  void (*add_filter_grad)(const Problem& p, const Block& block, const T* x, const T* grad_y, float* u);
};

// Built for one instruction set. Channels are padded to whole vectors of `lanes` in all that is transformed.
struct Kernels {
  std::int64_t lanes;
  ImageKernels<float> f32;
  ImageKernels<bfloat16> bf16;
  // weight [out, 3, 3, in], input channels [first, last), to u [position][in][padded out].
  void (*filters)(const float* weight, std::int64_t in, std::int64_t out, std::int64_t first, std::int64_t last, float* u);
  // The same turned by half a turn, which gives the input's gradient from the output's: output channels [first, last), to u
  // [position][out][padded in].
  void (*turned_filters)(const float* weight, std::int64_t in, std::int64_t out, std::int64_t first, std::int64_t last, float* u);
  // u [position][padded in][padded out] to grad_weight [out, 3, 3, in], input channels [first, last).
  void (*filter_grads)(const float* u, std::int64_t in, std::int64_t out, std::int64_t first, std::int64_t last,
                       float* grad_weight);

  template <class T>
  [[gnu::always_inline]] const ImageKernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return bf16;
    }
  }
  [[gnu::always_inline]] std::int64_t padded(std::int64_t channels) const { return (channels + lanes - 1) / lanes * lanes; }
};

// Every number of `rows` in a block is a multiple of this.
inline constexpr std::int64_t kRowStep = 16;

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;  // AVX-512 F, VL, DQ and BW

}  // namespace tessera::cpu::winograd

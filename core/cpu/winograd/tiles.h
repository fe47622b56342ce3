// Tiles between NHWC images and the operands of the products.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/winograd/problem.h"
#include "core/cpu/winograd/transforms.h"
#include "core/cpu/winograd/vectors.h"

namespace tessera::cpu::winograd {
namespace {

// Pixels of a tile; those outside of the image are zeros.
template <int N, class T>
struct Pixels {
  const T* at[N][N];

  Pixels(const Image& image, const T* data, const Corner& corner, const T* zeros) {
    bool column_inside[N];
    for (int j = 0; j < N; ++j) column_inside[j] = corner.x + j >= 0 && corner.x + j < image.w;
    for (int i = 0; i < N; ++i) {
      const bool row_inside = corner.y + i >= 0 && corner.y + i < image.h;
      std::int64_t offset = ((corner.image * image.h + corner.y + i) * image.w + corner.x) * image.channels;
#pragma GCC unroll 6
      for (int j = 0; j < N; ++j, offset += image.channels) {
        at[i][j] = (row_inside & column_inside[j]) ? data + offset : zeros;
      }
    }
  }
};

template <int N>
bool is_inside(const Image& image, const Corner& c) {
  return c.y >= 0 && c.x >= 0 && c.y + N <= image.h && c.x + N <= image.w;
}

// `one` of all channels of the N x N pixels at `corner`, to `to` + position * stride + vector * rows * W.
template <int W, int N, class T, class One>
void transform_tile(const Image& image, const T* data, const Corner& corner, const T* zeros, One one, float* to,
                    std::int64_t stride, std::int64_t rows) {
  using V = Vec<W>;
  const auto write_to = [&](std::int64_t c) {
    return [=](int i, int j, const V& v) { store<W>(v, to + c * rows + (i * kTile + j) * stride, W); };
  };
  if (is_inside<N>(image, corner)) {
    const std::int64_t row = image.w * image.channels;
    const T* const first = data + (corner.image * image.h + corner.y) * row + corner.x * image.channels;
    for_each_vector<W>(image.channels, [&](std::int64_t c, auto lanes) {
      const auto read = [&](int i, int j) { return load<W>(first + i * row + j * image.channels + c, lanes); };
      along_both<N, kTile, V>(read, one, write_to(c));
    });
  } else {
    const Pixels<N, T> pixels(image, data, corner, zeros);
    for_each_vector<W>(image.channels, [&](std::int64_t c, auto lanes) {
      const auto read = [&](int i, int j) { return load<W>(pixels.at[i][j] + c, lanes); };
      along_both<N, kTile, V>(read, one, write_to(c));
    });
  }
}

struct InputTransform {
  template <class V>
  [[gnu::always_inline]] void operator()(const V (&d)[kTile], V (&t)[kTile]) const {
    transform_input(d, t);
  }
};
struct GradTransform {
  template <class V>
  [[gnu::always_inline]] void operator()(const V (&y)[kOut], V (&m)[kTile]) const {
    transform_grad(y, m);
  }
};

// Tiles of 6x6 inputs or 4x4 gradients, as [position][vector of channels][tile][W]: the products find the elements of one vector
// and of neighbouring tiles at constant distances. Tiles from `count` on are zero.
template <int W, int N, class T, class One>
void transform_tiles(const Problem& p, const Image& image, const T* data, const Block& block, std::int64_t shift_y,
                     std::int64_t shift_x, One one, float* to) {
  const std::int64_t width = padded<W>(image.channels);
  const std::int64_t stride = block.stride(width);
  for (std::int64_t t = 0; t < block.count; ++t) {
    const Corner tile = p.corner(block.first + t);
    transform_tile<W, N>(image, data, {tile.image, tile.y - shift_y, tile.x - shift_x}, reinterpret_cast<const T*>(block.zeros),
                         one, to + t * W, stride, block.rows);
  }
  if (block.count == block.rows) return;
  for (std::int64_t at = 0; at < kPositions * width / W; ++at) {
    float* const vectors = to + at / (width / W) * stride + at % (width / W) * block.rows * W;
    std::memset(vectors + block.count * W, 0, static_cast<std::size_t>((block.rows - block.count) * W) * sizeof(float));
  }
}

template <int W, class T>
void write_tile(const Problem& p, const Corner& corner, const float* m, std::int64_t stride, std::int64_t rows_in_block,
                const Epilogue& epilogue, T* y) {
  using V = Vec<W>;
  const std::int64_t rows = p.y.h - corner.y < kOut ? p.y.h - corner.y : kOut;
  const std::int64_t columns = p.y.w - corner.x < kOut ? p.y.w - corner.x : kOut;
  T* const first = y + ((corner.image * p.y.h + corner.y) * p.y.w + corner.x) * p.y.channels;
  for_each_vector<W>(p.y.channels, [&](std::int64_t k, auto lanes) {
    const V bias = epilogue.bias == nullptr ? V{} : load<W>(epilogue.bias + k, lanes);
    const auto read = [&](int i, int j) { return load<W>(m + k * rows_in_block + (i * kTile + j) * stride, W); };
    const auto one = [](const V(&in)[kTile], V(&out)[kOut]) { transform_output(in, out); };
    along_both<kTile, kOut, V>(read, one, [&](int i, int j, const V& value) {
      if (i >= rows || j >= columns) return;
      const V sum = value + bias;
      const V kept = epilogue.relu ? (sum <= V{} ? V{} : sum) : sum;  // NaN stays NaN
      store<W>(kept, first + (i * p.y.w + j) * p.y.channels + k, lanes);
    });
  });
}

}  // namespace
}  // namespace tessera::cpu::winograd

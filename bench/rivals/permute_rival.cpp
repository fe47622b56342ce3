#include "bench/rivals/permute_rival.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "core/cpu/parallel.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kLanes = 8;
constexpr std::int64_t kRows = 32;  // of a tile: two lines of the copy
constexpr std::int64_t kColumns = 64;  // four lines of what is read
constexpr std::int64_t kLine = 16;
constexpr std::int64_t kAhead = 4;  // tiles from the one in work to the one that is fetched
constexpr std::size_t kCached = 16 << 20;  // larger copies are written past the caches

// Strides in the view and in the copy; walked in blocks of `step`.
struct Axis {
  std::int64_t size, from, to = 0, step = 1;

  std::int64_t blocks() const { return (size + step - 1) / step; }
};

// In the order of the view, without sizes of 1; axes that one stride steps through are one.
std::vector<Axis> axes_of(const Tensor& view) {
  std::vector<Axis> axes;
  for (int i = 0; i < view.rank(); ++i) {
    const std::int64_t size = view.dim(i), stride = view.strides()[i];
    if (size == 1) continue;
    if (!axes.empty() && axes.back().from == stride * size) {
      axes.back().size *= size;
      axes.back().from = stride;
    } else {
      axes.push_back({size, stride});
    }
  }
  std::int64_t stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    axis->to = stride;
    stride *= axis->size;
  }
  return axes;
}

// A block: where it begins in the view and in the copy, and how many of the last and of the line's indices it has.
struct Block {
  std::int64_t from = 0, to = 0, rows = 1, columns = 1;
};

// Whole vectors go past the caches, where `stream`: `to` is then a multiple of them.
void write_row(const float* from, float* to, std::int64_t count, bool stream) {
  std::int64_t i = 0;
  if (stream) {
    for (; i + kLanes <= count; i += kLanes) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
  }
  if (i < count) std::memcpy(to + i, from + i, static_cast<std::size_t>(count - i) * sizeof(float));
}

// from[r, c] to to[c, r].
void transpose_8x8(const float* from, std::int64_t from_pitch, float* to, std::int64_t to_pitch) {
  __m256 x[8], y[8];
  for (std::size_t i = 0; i < 8; ++i) x[i] = _mm256_loadu_ps(from + static_cast<std::int64_t>(i) * from_pitch);
  for (std::size_t i = 0; i < 8; i += 2) {
    y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
  for (std::size_t i = 0; i < 8; i += 4) {
    x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
    x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
    x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
    x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    float* const row = to + static_cast<std::int64_t>(i) * to_pitch;
    _mm256_store_ps(row, _mm256_permute2f128_ps(x[i], x[i + 4], 0x20));
    _mm256_store_ps(row + 4 * to_pitch, _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
  }
}

// Rows `pitch` apart to columns as rows of kRows. The sizes of a whole tile are constants: its loops are unrolled. Meanwhile the
// tile at `next` is fetched: no processor foresees its rows.
void transpose(const float* from, std::int64_t pitch, const float* next, float* to) {
  for (std::int64_t r = 0; r < kRows; r += kLanes) {
    for (std::int64_t c = 0; c < kColumns; c += kLanes) {
      if (c % kLine == 0) {
        for (std::int64_t i = r; i < r + kLanes; ++i) _mm_prefetch(next + i * pitch + c, _MM_HINT_T1);
      }
      transpose_8x8(from + r * pitch + c, pitch, to + c * kRows + r, kRows);
    }
  }
}

void transpose_part(const float* from, std::int64_t pitch, float* to, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) to[c * kRows + r] = from[r * pitch + c];
  }
}

bool takes_vectors(const float* to, std::int64_t pitch) {
  return reinterpret_cast<std::uintptr_t>(to) % (kLanes * sizeof(float)) == 0 && pitch % kLanes == 0;
}

void write_tile(const float* tile, float* to, std::int64_t pitch, bool stream) {
  for (std::int64_t c = 0; c < kColumns; ++c) {
    for (std::int64_t r = 0; r < kRows; r += kLanes) {
      const __m256 values = _mm256_load_ps(tile + c * kRows + r);
      float* const at = to + c * pitch + r;
      stream ? _mm256_stream_ps(at, values) : _mm256_storeu_ps(at, values);
    }
  }
}

// The `index`-th of the blocks, the last of the axes running fastest.
Block block_at(const std::vector<Axis>& axes, std::int64_t index) {
  Block block;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const std::int64_t at = index % axis->blocks() * axis->step;
    index /= axis->blocks();
    block.from += at * axis->from;
    block.to += at * axis->to;
    if (axis->to == 1) block.rows = std::min(axis->step, axis->size - at);
    if (axis->from == 1) block.columns = std::min(axis->step, axis->size - at);
  }
  return block;
}

// Calls body(index) for all blocks, on all threads.
template <class Body>
void for_each_block(std::int64_t blocks, std::int64_t elements, Body&& body) {
  cpu::parallel_parts(blocks, cpu::parts_for(elements), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t index = begin; index < end; ++index) body(index);
    _mm_sfence();  // what went past the caches is there
  });
}

}  // namespace

void permute_into(const Tensor& view, const Tensor& copy) {
  std::vector<Axis> axes = axes_of(view);
  const auto line = std::ranges::find(axes, 1, &Axis::from);
  if (line == axes.end()) return copy.copy_from(view);
  const bool stream = copy.bytes() > kCached;
  const float* const from = view.data<float>();
  float* const to = copy.data<float>();
  const bool rows_only = line + 1 == axes.end();
  const std::int64_t pitch = axes.back().from, row = line->to;
  line->step = rows_only ? line->size : kColumns;
  if (!rows_only) axes.back().step = kRows;
  // As memory has what is read, so that a tile lies near the one before it.
  std::ranges::sort(axes, std::greater<>(), &Axis::from);
  std::int64_t blocks = 1;
  for (const Axis& axis : axes) blocks *= axis.blocks();
  for_each_block(blocks, view.numel(), [&](std::int64_t index) {
    const Block block = block_at(axes, index);
    float* const at = to + block.to;
    if (rows_only) return write_row(from + block.from, at, block.columns, stream && takes_vectors(at, 0));
    alignas(64) float tile[kRows * kColumns];
    if (block.rows == kRows && block.columns == kColumns) {
      const Block next = block_at(axes, std::min(index + kAhead, blocks - 1));
      transpose(from + block.from, pitch, from + next.from, tile);
      return write_tile(tile, at, row, stream && takes_vectors(at, row));
    }
    transpose_part(from + block.from, pitch, tile, block.rows, block.columns);
    for (std::int64_t c = 0; c < block.columns; ++c) write_row(tile + c * kRows, at + c * row, block.rows, false);
  });
}

}  // namespace tessera::bench

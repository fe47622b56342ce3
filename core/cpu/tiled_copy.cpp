#include "core/cpu/tiled_copy.h"

#include <immintrin.h>

#include <algorithm>

#include "core/cpu/parallel.h"
#include "core/cpu/strided.h"

namespace tessera::cpu {
namespace {

constexpr std::int64_t kLanes = 8;
constexpr std::int64_t kTile = 32;  // elements of a tile in either dimension: two cache lines
constexpr std::int64_t kLine = 16;
constexpr std::int64_t kAhead = 8;  // the tile that is prefetched is this many tiles after the current one
constexpr std::int64_t kLarge = 4 << 20;  // elements; a larger target is written past the caches

// The blocks of a copy. A dimension that is contiguous in the source or in the target is cut into pieces of kTile elements; one
// that is contiguous in both is one piece.
class Blocks {
 public:
  explicit Blocks(const StridedLoop<2>& loop) : elements_(by_source(loop)), cut_(elements_) {
    for (int i = 0; i < elements_.rank; ++i) {
      if (stride(0, i) == 1) line_ = i;
      if (stride(1, i) == 1) row_ = i;
    }
    for (const int axis : {line_, row_}) {
      if (axis >= 0) cut(axis, line_ == row_ ? size(axis) : kTile);
    }
    for (int i = 0; i < cut_.rank; ++i) count_ *= cut_.sizes[static_cast<std::size_t>(i)];
  }

  bool in_tiles() const { return line_ >= 0 && row_ >= 0 && line_ != row_ && size(line_) >= kLanes && size(row_) >= kLanes; }
  bool in_rows() const { return line_ >= 0 && line_ == row_; }

  std::int64_t count() const { return count_; }
  std::int64_t row_length() const { return size(row_); }
  std::int64_t from_pitch() const { return stride(0, row_); }
  std::int64_t to_pitch() const { return stride(1, line_); }

  // Visits the blocks one after the other, starting with this one.
  StridedWalk<2> walk(std::int64_t block) const { return {cut_, cut_.rank, block}; }
  // Elements of a tile along the dimension that is contiguous in the source (lines) and in the target (rows).
  std::int64_t lines(const StridedWalk<2>& at) const { return left(at, line_); }
  std::int64_t rows(const StridedWalk<2>& at) const { return left(at, row_); }

 private:
  // Sorts the dimensions by the memory order of the source, so that each block is near the one before it.
  static StridedLoop<2> by_source(const StridedLoop<2>& loop) {
    StridedLoop<2> sorted = loop;
    for (int i = 0; i < loop.rank; ++i) {
      const auto own = static_cast<std::size_t>(i);
      std::size_t place = own;
      for (; place > 0 && sorted.strides[0][place - 1] < loop.strides[0][own]; --place) move(sorted, place - 1, sorted, place);
      move(loop, own, sorted, place);
    }
    return sorted;
  }

  static void move(const StridedLoop<2>& from, std::size_t source, StridedLoop<2>& to, std::size_t target) {
    to.sizes[target] = from.sizes[source];
    for (std::size_t k = 0; k < 2; ++k) to.strides[k][target] = from.strides[k][source];
  }

  void cut(int axis, std::int64_t length) {
    const auto at = static_cast<std::size_t>(axis);
    cut_.sizes[at] = (elements_.sizes[at] + length - 1) / length;
    for (std::size_t k = 0; k < 2; ++k) cut_.strides[k][at] = elements_.strides[k][at] * length;
  }

  std::int64_t size(int axis) const { return elements_.sizes[static_cast<std::size_t>(axis)]; }
  std::int64_t stride(std::size_t operand, int axis) const { return elements_.strides[operand][static_cast<std::size_t>(axis)]; }
  std::int64_t left(const StridedWalk<2>& at, int axis) const { return std::min(kTile, size(axis) - at.index(axis) * kTile); }

  StridedLoop<2> elements_, cut_;
  int line_ = -1, row_ = -1;  // the dimensions that are contiguous in the source and in the target
  std::int64_t count_ = 1;
};

// to[c, r] = from[r, c]
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
    _mm256_storeu_ps(row, _mm256_permute2f128_ps(x[i], x[i + 4], 0x20));
    _mm256_storeu_ps(row + 4 * to_pitch, _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
  }
}

// Transposes via a buffer in the cache, because the rows of a tile in the target may all map to the same few cache lines.
// Meanwhile the tile at `next`, if any, is prefetched: the processor cannot predict its lines.
void copy_tile(const float* from, std::int64_t from_pitch, const float* next, float* to, std::int64_t to_pitch, bool stream) {
  alignas(64) float tile[kTile * kTile];
  for (std::int64_t r = 0; r < kTile; r += kLanes) {
    for (std::int64_t c = 0; c < kTile; c += kLanes) {
      if (next != nullptr && c % kLine == 0) {
        for (std::int64_t i = r; i < r + kLanes; ++i) _mm_prefetch(next + i * from_pitch + c, _MM_HINT_T1);
      }
      transpose_8x8(from + r * from_pitch + c, from_pitch, tile + c * kTile + r, kTile);
    }
  }
  for (std::int64_t c = 0; c < kTile; ++c) {
    for (std::int64_t r = 0; r < kTile; r += kLanes) {
      const __m256 values = _mm256_load_ps(tile + c * kTile + r);
      float* const at = to + c * to_pitch + r;
      stream ? _mm256_stream_ps(at, values) : _mm256_storeu_ps(at, values);
    }
  }
}

void copy_part(const float* from, std::int64_t from_pitch, float* to, std::int64_t to_pitch, std::int64_t rows,
               std::int64_t lines) {
  const std::int64_t whole_rows = rows / kLanes * kLanes, whole_lines = lines / kLanes * kLanes;
  for (std::int64_t c = 0; c < whole_lines; c += kLanes) {
    for (std::int64_t r = 0; r < whole_rows; r += kLanes)
      transpose_8x8(from + r * from_pitch + c, from_pitch, to + c * to_pitch + r, to_pitch);
  }
  for (std::int64_t c = 0; c < lines; ++c) {
    for (std::int64_t r = c < whole_lines ? whole_rows : 0; r < rows; ++r) to[c * to_pitch + r] = from[r * from_pitch + c];
  }
}

bool takes_vectors(const float* to, std::int64_t pitch) {
  return reinterpret_cast<std::uintptr_t>(to) % (kLanes * sizeof(float)) == 0 && pitch % kLanes == 0;
}

void copy_tiles(const Blocks& blocks, bool large, const float* source, float* target, std::int64_t begin, std::int64_t end) {
  const std::int64_t from_pitch = blocks.from_pitch(), to_pitch = blocks.to_pitch();
  StridedWalk<2> walk = blocks.walk(begin), ahead = blocks.walk((begin + kAhead) % blocks.count());
  for (std::int64_t i = begin; i < end; ++i, walk.advance(), ahead.advance()) {
    const auto [at_from, at_to] = walk.at();
    const std::int64_t rows = blocks.rows(walk), lines = blocks.lines(walk);
    if (rows < kTile || lines < kTile) {
      copy_part(source + at_from, from_pitch, target + at_to, to_pitch, rows, lines);
    } else {
      copy_tile(source + at_from, from_pitch, large ? source + ahead.at()[0] : nullptr, target + at_to, to_pitch,
                large && takes_vectors(target + at_to, to_pitch));
    }
  }
}

void stream_rows(const Blocks& blocks, const float* source, float* target, std::int64_t begin, std::int64_t end) {
  const std::int64_t length = blocks.row_length();
  StridedWalk<2> walk = blocks.walk(begin);
  for (std::int64_t row = begin; row < end; ++row, walk.advance()) {
    const float* const from = source + walk.at()[0];
    float* const to = target + walk.at()[1];
    std::int64_t i = 0;
    if (takes_vectors(to, 0)) {
      for (; i + kLanes <= length; i += kLanes) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
    }
    std::copy(from + i, from + length, to + i);
  }
}

}  // namespace

bool tiled_copy(const StridedLoop<2>& loop, const float* source, float* target) {
  const std::int64_t elements = loop.outer() * loop.inner();
  if (loop.rank < 2 || elements == 0) return false;
  const Blocks blocks(loop);
  const bool large = elements > kLarge;
  if (!blocks.in_tiles() && !(blocks.in_rows() && large)) return false;
  parallel_parts(blocks.count(), parts_for(elements), [&](std::int64_t begin, std::int64_t end, int) {
    if (blocks.in_tiles()) {
      copy_tiles(blocks, large, source, target, begin, end);
    } else {
      stream_rows(blocks, source, target, begin, end);
    }
  });
  return true;
}

}  // namespace tessera::cpu

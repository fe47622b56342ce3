#include "core/cpu/tiled_copy.h"

#include <immintrin.h>

#include <algorithm>

#include "core/cpu/parallel.h"

namespace tessera::cpu {
namespace {

constexpr std::int64_t kLanes = 8;
constexpr std::int64_t kTile = 32;  // of both dimensions: two cache lines
constexpr std::int64_t kLine = 16;
constexpr std::int64_t kAhead = 8;  // tiles from the one in work to the one that is fetched
constexpr std::int64_t kLarge = 4 << 20;  // elements; a target of more is written past the caches

// One dimension of the walk; cut into pieces of `step`: of kTile elements where it is contiguous in the source or
// in the target, whole where it is in both.
struct Axis {
  std::int64_t size = 1, from = 0, to = 0, step = 1;

  std::int64_t pieces() const { return (size + step - 1) / step; }
};

// The blocks of a copy, in the order in which memory has the source, so that a tile lies near the one before it.
struct Blocks {
  int rank = 0;
  std::array<Axis, Shape::kMaxRank> axes{};  // innermost first
  int line = -1, row = -1;  // the axes that are contiguous in the source and in the target
  std::int64_t count = 1;

  explicit Blocks(const StridedLoop<2>& loop) : rank(loop.rank) {
    for (int i = 0; i < rank; ++i) {
      const auto own = static_cast<std::size_t>(i);
      const Axis axis{loop.sizes[own], loop.strides[0][own], loop.strides[1][own]};
      std::size_t place = own;
      for (; place > 0 && axes[place - 1].from > axis.from; --place) axes[place] = axes[place - 1];
      axes[place] = axis;
    }
    for (int i = 0; i < rank; ++i) {
      const Axis& axis = at(i);
      if (axis.from == 1) line = i;
      if (axis.to == 1) row = i;
    }
    if (line >= 0) axes[static_cast<std::size_t>(line)].step = line == row ? at(line).size : kTile;
    if (row >= 0 && row != line) axes[static_cast<std::size_t>(row)].step = kTile;
    for (int i = 0; i < rank; ++i) count *= at(i).pieces();
  }

  const Axis& at(int axis) const { return axes[static_cast<std::size_t>(axis)]; }
  bool in_tiles() const { return line >= 0 && row >= 0 && line != row && at(line).size >= kLanes && at(row).size >= kLanes; }
  bool in_rows() const { return line >= 0 && line == row; }
};

// Where a block begins in the source and in the target, and how many elements it has along the axes `line` and `row`.
class Walk {
 public:
  Walk(const Blocks& blocks, std::int64_t index) : blocks_(&blocks) {
    for (int i = 0; i < blocks.rank; ++i) {
      const Axis& axis = blocks.at(i);
      at_[static_cast<std::size_t>(i)] = index % axis.pieces() * axis.step;
      index /= axis.pieces();
      move(axis, at_[static_cast<std::size_t>(i)]);
    }
  }

  // The last block is followed by the first one.
  void advance() {
    for (int i = 0; i < blocks_->rank; ++i) {
      const Axis& axis = blocks_->at(i);
      std::int64_t& at = at_[static_cast<std::size_t>(i)];
      const std::int64_t before = at;
      at = at + axis.step < axis.size ? at + axis.step : 0;
      move(axis, at - before);
      if (at != 0) return;
    }
  }

  std::int64_t from() const { return from_; }
  std::int64_t to() const { return to_; }
  std::int64_t lines() const { return left(blocks_->line); }
  std::int64_t rows() const { return left(blocks_->row); }

 private:
  void move(const Axis& axis, std::int64_t by) {
    from_ += by * axis.from;
    to_ += by * axis.to;
  }
  std::int64_t left(int axis) const { return std::min(kTile, blocks_->at(axis).size - at_[static_cast<std::size_t>(axis)]); }

  const Blocks* blocks_;
  std::array<std::int64_t, Shape::kMaxRank> at_{};
  std::int64_t from_ = 0, to_ = 0;
};

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
    _mm256_storeu_ps(row, _mm256_permute2f128_ps(x[i], x[i + 4], 0x20));
    _mm256_storeu_ps(row + 4 * to_pitch, _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
  }
}

// By a tile of its own in the cache, because the rows of one in the target may all fall into the same few lines of the cache.
// Meanwhile the tile at `next`, if any, is fetched: no processor foresees its lines.
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
  const std::int64_t from_pitch = blocks.at(blocks.row).from, to_pitch = blocks.at(blocks.line).to;
  Walk walk(blocks, begin), ahead(blocks, (begin + kAhead) % blocks.count);
  for (std::int64_t i = begin; i < end; ++i, walk.advance(), ahead.advance()) {
    float* const to = target + walk.to();
    if (walk.rows() < kTile || walk.lines() < kTile) {
      copy_part(source + walk.from(), from_pitch, to, to_pitch, walk.rows(), walk.lines());
    } else {
      copy_tile(source + walk.from(), from_pitch, large ? source + ahead.from() : nullptr, to, to_pitch,
                large && takes_vectors(to, to_pitch));
    }
  }
}

void stream_rows(const Blocks& blocks, const float* source, float* target, std::int64_t begin, std::int64_t end) {
  const std::int64_t length = blocks.at(blocks.row).size;
  Walk walk(blocks, begin);
  for (std::int64_t row = begin; row < end; ++row, walk.advance()) {
    const float* const from = source + walk.from();
    float* const to = target + walk.to();
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
  parallel_parts(blocks.count, parts_for(elements), [&](std::int64_t begin, std::int64_t end, int) {
    if (blocks.in_tiles()) {
      copy_tiles(blocks, large, source, target, begin, end);
    } else {
      stream_rows(blocks, source, target, begin, end);
    }
    _mm_sfence();  // what went past the caches is there
  });
  return true;
}

}  // namespace tessera::cpu

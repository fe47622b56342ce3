#include "core/cpu/sparse/gradient.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/tensor.h"

namespace tessera::cpu::sparse {
namespace {

// Wanted shares, chunks of positions (with separate sums) times parts of rows: enough for 16 threads. Fewer threads use as many.
constexpr std::int64_t kShares = 16;
constexpr std::int64_t kMostSums = std::int64_t{1} << 22;  // floats, of all chunks

// Sums gradients in the buffers of one thread.
class Summer {
 public:
  Summer(const Kernels& kernels, const GradientPlan& plan, std::span<const std::int32_t> columns, GradientUnits& units)
      : kernels_(kernels), plan_(plan), columns_(columns), units_(units) {
    std::int64_t rows = 0;
    for (const GradientPlan::Part& part : plan.parts) {
      if (part.blocks > 0) rows = std::max(rows, part.last - part.first);
    }
    memory_ =
        Tensor::empty({units.x_floats() + kStripLanes + rows * units.y_pitch() + kSumPanel * kMostTileVectors * kTileLanes});
    x_ = memory_.data<float>();
    tile_y_ = x_ + (units.x_floats() + kStripLanes) / kStripLanes * kStripLanes;
    y_ = tile_y_ + kSumPanel * kMostTileVectors * kTileLanes;
  }

  struct Range {
    std::int64_t first, last;
  };

  // Overwrites `sums` with the sums of these parts over these units.
  void sum(const Range& units, const Range& parts, float* sums) {
    for (std::int64_t i = parts.first; i < parts.last; ++i) {
      std::fill_n(sums + plan_.parts[i].sums, plan_.parts[i].sum_count, 0.0F);
    }
    for (std::int64_t unit = units.first; unit < units.last; ++unit) {
      units_.pack_x(unit, x_);
      const std::span<const float* const> pixels = units_.pixels(unit);
      const std::span<const UnitRun> runs = units_.runs(unit);
      for (std::int64_t i = parts.first; i < parts.last; ++i) {
        add_tiles(plan_.parts[i], pixels, runs, sums);
        if (plan_.parts[i].blocks > 0) add_dots(plan_.parts[i], pixels, runs, sums);
      }
    }
  }

 private:
  void add_tiles(const GradientPlan::Part& part, std::span<const float* const> pixels, std::span<const UnitRun> runs,
                 float* sums) {
    for (std::int64_t t = part.tile; t < part.tile + part.tiles; ++t) {
      const GradientPlan::Tile& tile = plan_.tiles[t];
      for (const UnitRun& run : runs) {
        copy_rows(tile, pixels.data() + run.y, run.width);
        kernels_.tile(columns_.data() + tile.columns, tile.column_count, tile_y_, tile.vectors(), x_ + run.x, run.width,
                      sums + tile.sums);
      }
    }
  }

  // Copies the tile's rows to tile_y_: [positions][rows, padded with zeros to whole vectors].
  void copy_rows(const GradientPlan::Tile& tile, const float* const* pixels, std::int64_t positions) {
    const GradientPlan::TileRow* const rows = plan_.tile_rows.data() + tile.rows;
    const std::int64_t pitch = tile.vectors() * kTileLanes;
    const bool neighbours = rows[tile.row_count - 1].row - rows[0].row == tile.row_count - 1;
    const std::int64_t whole = neighbours ? tile.row_count / kTileLanes * kTileLanes : 0;
    for (std::int64_t i = 0; i < positions; ++i) {
      float* const to = tile_y_ + i * pitch;
      const float* const from = pixels[i];
      for (std::int64_t r = 0; r < whole; r += kTileLanes)
        std::memcpy(to + r, from + rows[0].row + r, kTileLanes * sizeof(float));
      for (std::int64_t r = whole; r < pitch; ++r) to[r] = r < tile.row_count ? from[rows[r].row] : 0.0F;
    }
  }

  void add_dots(const GradientPlan::Part& part, std::span<const float* const> pixels, std::span<const UnitRun> runs,
                float* sums) {
    rows_.assign(pixels.begin(), pixels.end());
    for (const float*& row : rows_) row += part.first;
    kernels_.pack(rows_.data(), static_cast<std::int64_t>(rows_.size()), part.last - part.first, y_, units_.y_pitch());
    for (std::int64_t b = part.block; b < part.block + part.blocks; ++b) {
      const GradientPlan::Block& block = plan_.blocks[b];
      const Dots dots{plan_.dot_rows.data() + block.rows, block.row_count, columns_.data() + block.columns};
      for (const UnitRun& run : runs) kernels_.dots(dots, y_ + run.y, units_.y_pitch(), x_ + run.x, run.width, sums + block.sums);
    }
  }

  const Kernels& kernels_;
  const GradientPlan& plan_;
  std::span<const std::int32_t> columns_;
  GradientUnits& units_;
  Tensor memory_;
  float* x_;
  float* tile_y_;
  float* y_;
  std::vector<const float*> rows_;
};

// sums[0] += sums[1] + ... in a part. Chunks are `each` floats apart.
void add_chunks(const GradientPlan::Part& part, std::int64_t chunks, std::int64_t each, float* sums) {
  float* const to = sums + part.sums;
  for (std::int64_t chunk = 1; chunk < chunks; ++chunk) {
    const float* const from = to + chunk * each;
#pragma omp simd
    for (std::int64_t i = 0; i < part.sum_count; ++i) to[i] += from[i];
  }
}

// Transposes a tile's sums into `grad`, in blocks that stay in the first-level cache. Not inlined: its loops need the registers.
[[gnu::noinline]] void take_tile(const GradientPlan::Tile& tile, const GradientPlan::TileRow* rows, const float* sums,
                                 float* grad) {
  const std::int64_t pitch = tile.vectors() * kTileLanes, row_count = tile.row_count, column_count = tile.column_count;
  for (std::int64_t row = 0; row < row_count; row += kTileLanes) {
    for (std::int64_t column = 0; column < column_count; column += kTileLanes) {
      const std::int64_t width = std::min(kTileLanes, column_count - column);
      for (std::int64_t r = row; r < std::min(row + kTileLanes, row_count); ++r) {
        float* const to = grad + rows[r].element + column;
        const float* const from = sums + column * pitch + r;
        for (std::int64_t c = 0; c < width; ++c) to[c] = from[c * pitch];
      }
    }
  }
}

void take_part(const GradientPlan& plan, const GradientPlan::Part& part, const float* sums, float* grad) {
  for (std::int64_t t = part.tile; t < part.tile + part.tiles; ++t) {
    const GradientPlan::Tile& tile = plan.tiles[t];
    take_tile(tile, plan.tile_rows.data() + tile.rows, sums + tile.sums, grad);
  }
  for (std::int64_t b = part.block; b < part.block + part.blocks; ++b) {
    const GradientPlan::Block& block = plan.blocks[b];
    const std::int32_t* const elements = plan.dot_elements.data() + block.elements;
    for (std::int64_t i = 0; i < block.element_count; ++i) grad[elements[i]] = sums[block.sums + i];
  }
}

}  // namespace

void gradient(const Kernels& kernels, const GradientPlan& plan, const Window& window, const float* x, const float* grad_y,
              float* grad) {
  gradient(kernels, plan, window, gradient_strips(plan, window), x, grad_y, grad);
}

void gradient(const Kernels& kernels, const GradientPlan& plan, const Window& window, const std::optional<Extent>& strips,
              const float* x, const float* grad_y, float* grad) {
  const std::unique_ptr<GradientUnits> shared = gradient_units(kernels, plan, window, strips, x, grad_y);
  const std::span<const std::int32_t> columns = shared->offsets();
  const std::int64_t units = shared->count(), each = plan.sum_count;
  const auto parts = static_cast<std::int64_t>(plan.parts.size());
  const std::int64_t most = std::min({units, (kShares + parts - 1) / parts, kMostSums / std::max<std::int64_t>(each, 1)});
  const std::int64_t chunks = std::max<std::int64_t>(most, 1);
  const Tensor chunk_sums = Tensor::empty({chunks, each});
  float* const all = chunk_sums.data<float>();
  const double flops = 2.0 * static_cast<double>(each) * static_cast<double>(window.positions());
  const int threads = threads_for(flops);
  // Every thread that shares a chunk packs x.
  const auto add = [&](std::int64_t begin, std::int64_t end, int) {
    const std::unique_ptr<GradientUnits> own = gradient_units(kernels, plan, window, strips, x, grad_y);
    Summer summer(kernels, plan, columns, *own);
    for (std::int64_t chunk = begin / parts; chunk * parts < end; ++chunk) {
      const std::int64_t first = std::max<std::int64_t>(begin - chunk * parts, 0), last = std::min(end - chunk * parts, parts);
      summer.sum({units * chunk / chunks, units * (chunk + 1) / chunks}, {first, last}, all + chunk * each);
    }
  };
  parallel_parts(chunks * parts, static_cast<int>(std::min<std::int64_t>(threads, chunks * parts)), add);
  const auto take = [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      add_chunks(plan.parts[i], chunks, each, all);
      take_part(plan, plan.parts[i], all, grad);
    }
  };
  parallel_parts(parts, static_cast<int>(std::min<std::int64_t>(threads, parts)), take);
}

}  // namespace tessera::cpu::sparse

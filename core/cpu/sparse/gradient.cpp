#include "core/cpu/sparse/gradient.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/tensor.h"

namespace tessera::cpu::sparse {
namespace {

// Chunks of positions, each of which has sums of its own, times parts of rows: enough for as many threads, whatever their number.
constexpr std::int64_t kShares = 16;
constexpr std::int64_t kMostSums = std::int64_t{1} << 22;  // of all chunks

// Of one thread.
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

  // Sums of parts [first, last) over units [begin, end).
  void add(std::int64_t begin, std::int64_t end, std::size_t first, std::size_t last, float* sums) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      units_.pack_x(unit, x_);
      const std::span<const float* const> pixels = units_.pixels(unit);
      const std::span<const UnitRun> runs = units_.runs(unit);
      for (std::size_t i = first; i < last; ++i) {
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

  // [positions][whole vectors of the tile's rows]
  void copy_rows(const GradientPlan::Tile& tile, const float* const* pixels, std::int64_t positions) {
    const std::int32_t* const rows = plan_.tile_rows.data() + tile.rows;
    const std::int64_t pitch = tile.vectors() * kTileLanes;
    const bool neighbours = rows[tile.row_count - 1] - rows[0] == tile.row_count - 1;
    for (std::int64_t i = 0; i < positions; ++i) {
      float* const to = tile_y_ + i * pitch;
      if (neighbours) std::memcpy(to, pixels[i] + rows[0], static_cast<std::size_t>(tile.row_count) * sizeof(float));
      for (std::int64_t r = 0; !neighbours && r < tile.row_count; ++r) to[r] = pixels[i][rows[r]];
      std::fill(to + tile.row_count, to + pitch, 0.0F);
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

}  // namespace

void gradient(const Kernels& kernels, const GradientPlan& plan, const Window& window, const float* x, const float* grad_y,
              float* grad) {
  gradient(kernels, plan, window, gradient_strips(plan, window), x, grad_y, grad);
}

void gradient(const Kernels& kernels, const GradientPlan& plan, const Window& window, const std::optional<Extent>& strips,
              const float* x, const float* grad_y, float* grad) {
  const std::unique_ptr<GradientUnits> shared = gradient_units(kernels, plan, window, strips, x, grad_y);
  const std::span<const std::int32_t> columns = shared->offsets();
  const std::int64_t units = shared->count(), each = static_cast<std::int64_t>(plan.from.size());
  const auto parts = static_cast<std::int64_t>(plan.parts.size());
  const std::int64_t most = std::min({units, (kShares + parts - 1) / parts, kMostSums / std::max<std::int64_t>(each, 1)});
  const std::int64_t chunks = std::max<std::int64_t>(most, 1);
  const Tensor chunk_sums = Tensor::empty({chunks, each});
  const double flops = 2.0 * static_cast<double>(each) * static_cast<double>(window.positions());
  const int threads = omp_in_parallel() || flops < kLeastFlopsForThreads ? 1 : omp_get_max_threads();
  // Threads that share a chunk pack x once each.
  parallel_parts(chunks * parts, static_cast<int>(std::min<std::int64_t>(threads, chunks * parts)),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   const std::unique_ptr<GradientUnits> own = gradient_units(kernels, plan, window, strips, x, grad_y);
                   Summer summer(kernels, plan, columns, *own);
                   for (std::int64_t chunk = begin / parts; chunk * parts < end; ++chunk) {
                     const std::int64_t first = std::max(begin - chunk * parts, std::int64_t{0}),
                                        last = std::min(end - chunk * parts, parts);
                     float* const sums = chunk_sums.data<float>() + chunk * each;
                     for (std::int64_t i = first; i < last; ++i)
                       std::fill_n(sums + plan.parts[i].sums, plan.parts[i].sum_count, 0.0F);
                     summer.add(units * chunk / chunks, units * (chunk + 1) / chunks, static_cast<std::size_t>(first),
                                static_cast<std::size_t>(last), sums);
                   }
                 });
  parallel_for(each, kGrain, [&](std::int64_t begin, std::int64_t end) {
    const float* const sums = chunk_sums.data<float>();
    for (std::int64_t i = begin; i < end; ++i) {
      float sum = sums[i];
      for (std::int64_t chunk = 1; chunk < chunks; ++chunk) sum += sums[chunk * each + i];
      if (plan.from[i] >= 0) grad[plan.from[i]] = sum;
    }
  });
}

}  // namespace tessera::cpu::sparse

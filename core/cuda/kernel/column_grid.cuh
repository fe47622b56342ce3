// How the threads of a grid share [outer, rows, columns]. Each thread keeps to its columns. A block is a tile of neighbouring
// columns, `across` packs wide, by `down` rows that it takes at once. Each thread loads several rows before it computes.
#pragma once

#include "core/cuda/kernel/reduce.cuh"

namespace tessera::cuda {

struct ColumnGrid {
  std::int64_t outer = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t tiles = 0;  // blocks next to each other along the columns
  std::int64_t rows_per_part = 0;
  int parts = 1;
  int across = 1;
  int down = 1;
};

inline constexpr int kColumnBlock = 256;

// `lanes` elements per pack, `batch` rows that a thread loads at once, `blocks_per_processor` blocks that share the rows.
inline ColumnGrid column_grid(Device device, std::int64_t outer, std::int64_t rows, std::int64_t columns, int lanes, int batch,
                              int blocks_per_processor) {
  ColumnGrid grid{.outer = outer, .rows = rows, .columns = columns};
  const std::int64_t packs = (columns + lanes - 1) / lanes;
  grid.tiles = (packs + 31) / 32;
  grid.across = static_cast<int>((packs + grid.tiles - 1) / grid.tiles);
  grid.down = kColumnBlock / grid.across;
  const std::int64_t step = std::int64_t{grid.down} * batch;
  const std::int64_t blocks = std::int64_t{limits_of(device).processors} * blocks_per_processor;
  const std::int64_t wanted = std::clamp<std::int64_t>(blocks / (grid.tiles * outer), 1, 65535);
  grid.rows_per_part = std::max<std::int64_t>(1, ((rows + wanted - 1) / wanted + step - 1) / step) * step;
  grid.parts = static_cast<int>(std::max<std::int64_t>(1, (rows + grid.rows_per_part - 1) / grid.rows_per_part));
  return grid;
}

// The part of the grid's work that one thread does: rows begin, begin + step, ... below end.
struct ColumnPlace {
  std::int64_t outer;
  std::int64_t column;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t step;
  bool inside;

  __device__ ColumnPlace(const ColumnGrid& grid, int lanes)
      : outer(blockIdx.x / grid.tiles),
        column((blockIdx.x % grid.tiles * grid.across + threadIdx.x % grid.across) * lanes),
        begin(std::int64_t{blockIdx.y} * grid.rows_per_part + threadIdx.x / grid.across),
        end(min((std::int64_t{blockIdx.y} + 1) * grid.rows_per_part, grid.rows)),
        step(grid.down),
        inside(static_cast<int>(threadIdx.x) < grid.across * grid.down && column < grid.columns) {}

  // Calls body(items, first row, how many) with up to kBatch rows loaded at once.
  template <class Item, int kBatch, class Load, class Body>
  __device__ void for_each_batch(Load&& load, Body&& body) const {
    for (std::int64_t row = begin; row < end; row += kBatch * step) {
      Item items[kBatch];
      int count = 0;  // counted, because a 64-bit division would cost more than a load
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        if (row + u * step >= end) continue;
        items[u] = load(row + u * step);
        count = u + 1;
      }
      body(items, row, count);
    }
  }
};

// One or several sums of doubles per column.
template <int kSums>
struct Sums {
  double at[kSums];
  __device__ static Sums none() { return {}; }
  __device__ void join(const Sums& other) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) at[i] += other.at[i];
  }
};

}  // namespace tessera::cuda

// Maps over [rows, columns] with parameters for each column.
#pragma once

#include "core/cuda/kernel/column_grid.cuh"

namespace tessera::cuda {

namespace detail {

template <class Op, int N, int kBatch>
__global__ void __launch_bounds__(kColumnBlock) map_columns_kernel(const Op op, const ColumnGrid grid) {
  const ColumnPlace place(grid, N);
  if (!place.inside) return;
  using Item = typename Op::template Item<N>;
  const auto channel = op.template channel<N>(place.outer, place.column);
  place.for_each_batch<Item, kBatch>([&](std::int64_t row) { return op.template load<N>(channel, row, place.column); },
                                     [&](const Item(&items)[kBatch], std::int64_t row, int count) {
#pragma unroll
                                       for (int u = 0; u < kBatch; ++u) {
                                         if (u >= count) continue;
                                         op.template store<N>(channel, items[u], row + u * place.step, place.column);
                                       }
                                     });
}

template <class Op, int N>
void map_columns_of(const char* name, Device device, std::int64_t rows, std::int64_t columns, const Op& op) {
  constexpr int kBatch = Op::template kBatch<N>;
  const ColumnGrid grid = column_grid(device, 1, rows, columns, N, kBatch, 16);
  const dim3 blocks(static_cast<unsigned>(grid.tiles), static_cast<unsigned>(grid.parts));
  launch(name, device, {blocks, dim3(kColumnBlock)}, map_columns_kernel<Op, N, kBatch>, op, grid);
}

}  // namespace detail

// Calls op.store<N>(channel, item, row, column) for all of [rows, columns]. channel, Item and load are those of reduce_columns(),
// with outer 0.
template <class T, class Op>
void map_columns(const char* name, Device device, std::int64_t rows, std::int64_t columns, bool aligned, const Op& op) {
  if (rows == 0 || columns == 0) return;
  if (aligned && columns % kWidest<T> == 0) return detail::map_columns_of<Op, kWidest<T>>(name, device, rows, columns, op);
  detail::map_columns_of<Op, 1>(name, device, rows, columns, op);
}

}  // namespace tessera::cuda

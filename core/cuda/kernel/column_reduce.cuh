// Reductions over the rows of [outer, rows, columns]. They take two passes if the columns alone do not fill the chip.
#pragma once

#include "core/cuda/kernel/column_grid.cuh"

namespace tessera::cuda {

namespace detail {

// Joins states[me], states[me + step], ... (`count` states) into states[me], for me < step. All threads of the block call this.
template <int N, class State>
__device__ void join_down(State* states, int me, int step, int count, bool takes_part) {
  for (int width = count; width > 1;) {
    const int half = (width + 1) / 2;
    __syncthreads();
    if (takes_part && me / step < width - half) {
#pragma unroll
      for (int i = 0; i < N; ++i) states[me * N + i].join(states[(me + half * step) * N + i]);
    }
    width = half;
  }
  __syncthreads();
}

template <class Op, int N, int kBatch>
__global__ void __launch_bounds__(kColumnBlock)
    reduce_columns_kernel(const Op op, const ColumnGrid grid, typename Op::State* partials) {
  using State = typename Op::State;
  __shared__ __align__(16) std::byte room[kColumnBlock * N * sizeof(State)];
  State* const shared = reinterpret_cast<State*>(room);
  const ColumnPlace place(grid, N);
  State states[N];
#pragma unroll
  for (int i = 0; i < N; ++i) states[i] = State::none();
  if (place.inside) {
    using Item = typename Op::template Item<N>;
    const auto channel = op.template channel<N>(place.outer, place.column);
    place.for_each_batch<Item, kBatch>([&](std::int64_t row) { return op.template load<N>(channel, row, place.column); },
                                       [&](const Item(&items)[kBatch], std::int64_t row, int count) {
                                         op.template add<N, kBatch>(channel, items, count, row, place, states);
                                       });
  }
  const auto me = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < N; ++i) shared[me * N + i] = states[i];
  join_down<N>(shared, me, grid.across, grid.down, me < grid.across * grid.down);
  if (!place.inside || me >= grid.across) return;
  State* const part = partials + (place.outer * grid.parts + blockIdx.y) * grid.columns;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (grid.parts == 1) op.finish(place.outer, place.column + i, shared[me * N + i]);
    else part[place.column + i] = shared[me * N + i];
  }
}

inline constexpr int kFinishColumns = 8;

template <class Op>
__global__ void __launch_bounds__(kColumnBlock)
    finish_columns_kernel(const Op op, const ColumnGrid grid, const typename Op::State* partials) {
  using State = typename Op::State;
  constexpr int kDown = kColumnBlock / kFinishColumns;
  __shared__ __align__(16) std::byte room[kColumnBlock * sizeof(State)];
  State* const shared = reinterpret_cast<State*>(room);
  const auto me = static_cast<int>(threadIdx.x);
  const std::int64_t column = std::int64_t{blockIdx.x} * kFinishColumns + me % kFinishColumns;
  const std::int64_t outer = blockIdx.y;
  State state = State::none();
  if (column < grid.columns) {
#pragma unroll 4
    for (int part = me / kFinishColumns; part < grid.parts; part += kDown) {
      state.join(partials[(outer * grid.parts + part) * grid.columns + column]);
    }
  }
  shared[me] = state;
  join_down<1>(shared, me, kFinishColumns, kDown, true);
  if (me < kFinishColumns && column < grid.columns) op.finish(outer, column, shared[me]);
}

}  // namespace detail

// Joins the partials [outer, parts, columns] of the grid and passes each result to op.finish().
template <class Op>
void finish_columns(const char* name, Device device, const Op& op, const ColumnGrid& grid, const typename Op::State* partials) {
  const auto blocks = static_cast<unsigned>((grid.columns + detail::kFinishColumns - 1) / detail::kFinishColumns);
  launch(name, device, {dim3(blocks, static_cast<unsigned>(grid.outer)), dim3(kColumnBlock)}, detail::finish_columns_kernel<Op>,
         op, grid, partials);
}

namespace detail {

template <class Op, int N>
void reduce_columns_of(const char* name, Device device, std::int64_t outer, std::int64_t rows, std::int64_t columns,
                       const Op& op) {
  constexpr int kBatch = Op::template kBatch<N>;
  const ColumnGrid grid = column_grid(device, outer, rows, columns, N, kBatch, 4);
  using State = typename Op::State;
  const Tensor partials = states_on<State>(device, grid.parts == 1 ? 0 : outer * grid.parts * columns);
  State* const states = static_cast<State*>(partials.raw());
  const dim3 blocks(static_cast<unsigned>(grid.tiles * outer), static_cast<unsigned>(grid.parts));
  launch(name, device, {blocks, dim3(kColumnBlock)}, reduce_columns_kernel<Op, N, kBatch>, op, grid, states);
  if (grid.parts > 1) finish_columns(name, device, op, grid, states);
}

}  // namespace detail

// Reduces rows of [outer, rows, columns] to op.finish(outer, column, state). Op:
//   State: none(), join(other) in place; Item<N>: N columns of a row; kBatch<N>: rows to load at once;
//   channel<N>(outer, column): what all rows share; load<N>(channel, row, column) -> Item<N>;
//   add<N, kBatch>(channel, items, count, first row, place, states): item u < count is row first + u * place.step.
// A pack has kWidest<T> elements if `aligned` (operands in packs and their rows begin at multiples of 16 bytes), otherwise one.
template <class T, class Op>
void reduce_columns(const char* name, Device device, std::int64_t outer, std::int64_t rows, std::int64_t columns, bool aligned,
                    const Op& op) {
  if (outer == 0 || columns == 0) return;
  if (aligned && columns % kWidest<T> == 0) {
    return detail::reduce_columns_of<Op, kWidest<T>>(name, device, outer, rows, columns, op);
  }
  detail::reduce_columns_of<Op, 1>(name, device, outer, rows, columns, op);
}

}  // namespace tessera::cuda

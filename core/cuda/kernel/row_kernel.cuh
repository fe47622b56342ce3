// Kernels that treat each row of [rows, n] separately. A group of threads holds a row in registers, so that memory is read once.
// Rows that do not fit in registers are read again, from the cache.
#pragma once

#include "core/cuda/kernel/reduce.cuh"

namespace tessera::cuda {

// How a thread of a group walks a row in packs of N elements: pack k begins at begin + k * kStep. The thread keeps all its packs
// in registers, at most kRegisterPacks. kRegisterPacks is 0 if they do not fit there. Rows after the last one are walked as empty
// rows, because shuffles need every lane.
template <int kGroup, int N, int kRegisterPacks>
struct RowWalk {
  static constexpr int kPack = N;
  static constexpr int kPacks = kRegisterPacks;
  static constexpr std::int64_t kStep = std::int64_t{kGroup} * N;
  std::int64_t row;
  std::int64_t begin;  // index of this thread's first pack in the tensor
  std::int64_t end;  // end of the row in the tensor
  std::int64_t column;  // column of this thread's first pack

  __device__ bool first() const { return threadIdx.x % kGroup == 0; }
  __device__ bool holds(int k) const { return begin + k * kStep < end; }
  __device__ std::int64_t at(int k) const { return begin + k * kStep; }
  __device__ std::int64_t column_of(std::int64_t index) const { return column + (index - begin); }

  template <class V, class Join>
  __device__ static V reduce(V value, Join join) {
    if constexpr (kGroup <= 32) return warp_reduce<kGroup>(value, join);
    else return block_reduce<kGroup>(value, join);
  }

  // Calls body(k, index) for the packs that a thread keeps in registers, or body(0, index) for all its packs if it keeps none.
  template <class Body>
  __device__ void for_each(Body&& body) const {
    if constexpr (kRegisterPacks > 0) {
#pragma unroll
      for (int k = 0; k < kRegisterPacks; ++k) {
        if (holds(k)) body(k, at(k));
      }
    } else {
      for (std::int64_t index = begin; index < end; index += kStep) body(0, index);
    }
  }

  // Calls body.template operator()<width>(k, index) likewise. In rows that are not held, only packs at a multiple of N in the
  // tensor are whole, wherever the row begins. The elements before and after them come one by one, as packs of width 1.
  template <class Body>
  __device__ void for_each_piece(Body&& body) const {
    if constexpr (kRegisterPacks > 0) {
      for_each([&](int k, std::int64_t index) { body.template operator()<N>(k, index); });
    } else {
      const std::int64_t start = begin - column, lane = column / N;
      const std::int64_t first = start + (N - start % N) % N;
      const std::int64_t last = first < end ? end - (end - first) % N : first;
      if (start + lane < min(first, end)) body.template operator()<1>(0, start + lane);
#pragma unroll 2
      for (std::int64_t index = first + lane * N; index < last; index += kStep) body.template operator()<N>(0, index);
      if (last + lane < end) body.template operator()<1>(0, last + lane);
    }
  }
};

namespace detail {

inline constexpr int kLeastBlock = 128;

template <class Op, int kGroup, int N, int kRegisterPacks>
__global__ void __launch_bounds__(kGroup < kLeastBlock ? kLeastBlock : kGroup)
    rows_kernel(const Op op, std::int64_t rows, std::int64_t n) {
  constexpr int kBlock = kGroup < kLeastBlock ? kLeastBlock : kGroup;
  constexpr int kRows = kBlock / kGroup;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kRows; first < rows; first += std::int64_t{gridDim.x} * kRows) {
    const unsigned group = threadIdx.x / kGroup, lane = threadIdx.x % kGroup;
    const std::int64_t row = first + group;
    const std::int64_t column = std::int64_t{lane} * N;
    const RowWalk<kGroup, N, kRegisterPacks> walk{row, row * n + column, row < rows ? (row + 1) * n : 0, column};
    op(walk, row < rows);
  }
}

template <int kGroup, int N, int kRegisterPacks, class Op>
void launch_group(const char* name, Device device, std::int64_t rows, std::int64_t n, const Op& op) {
  constexpr int kBlock = kGroup < kLeastBlock ? kLeastBlock : kGroup;
  constexpr std::int64_t kRows = kBlock / kGroup;
  const std::int64_t blocks = std::min<std::int64_t>((rows + kRows - 1) / kRows, 0x7fffffff);
  const LaunchShape shape{dim3(static_cast<unsigned>(blocks)), dim3(kBlock)};
  launch(name, device, shape, rows_kernel<Op, kGroup, N, kRegisterPacks>, op, rows, n);
}

inline constexpr int kMostGroup = 512;
constexpr int most_packs(int width) { return width == 8 ? 4 : 8; }  // at most 32 numbers in registers

template <int N, class Op>
void launch_rows_of(const char* name, Device device, std::int64_t rows, std::int64_t n, const Op& op) {
  constexpr int kRegisterPacks = most_packs(N);
  const std::int64_t packs = (n + N - 1) / N;
  if constexpr (N > 1) {
    if (packs <= 8 * kRegisterPacks) return launch_group<8, N, kRegisterPacks>(name, device, rows, n, op);
  }
  if (packs <= 32 * kRegisterPacks) return launch_group<32, N, kRegisterPacks>(name, device, rows, n, op);
  if constexpr (N > 1) {
    if (packs <= 128 * kRegisterPacks) return launch_group<128, N, kRegisterPacks>(name, device, rows, n, op);
  }
  if (packs <= kMostGroup * kRegisterPacks) return launch_group<kMostGroup, N, kRegisterPacks>(name, device, rows, n, op);
  launch_group<kMostGroup, N, 0>(name, device, rows, n, op);
}

// For an aligned tensor whose rows begin anywhere. False, and nothing is launched, if registers can hold a row.
template <class T, class Op>
bool launch_pieces(const char* name, Device device, std::int64_t rows, std::int64_t n, const Op& op) {
  if (n <= kMostGroup * most_packs(1)) return false;
  launch_group<kMostGroup, kWidest<T>, 0>(name, device, rows, n, op);
  return true;
}

}  // namespace detail

// Calls op(walk, inside) for each row of [rows, n] with elements of T. `inside` is false for threads after the last row.
// `aligned`: every operand that is read or written in packs begins at a multiple of 16 bytes. An op with a member type Pieces
// walks by for_each_piece().
template <class T, class Op>
void launch_rows(const char* name, Device device, std::int64_t rows, std::int64_t n, bool aligned, const Op& op) {
  if (rows == 0 || n == 0) return;
  if (aligned && n % kWidest<T> == 0) return detail::launch_rows_of<kWidest<T>>(name, device, rows, n, op);
  if constexpr (requires { typename Op::Pieces; }) {
    if (aligned && detail::launch_pieces<T>(name, device, rows, n, op)) return;
  }
  detail::launch_rows_of<1>(name, device, rows, n, op);
}

}  // namespace tessera::cuda

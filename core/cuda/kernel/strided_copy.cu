#include <cstdint>
#include <type_traits>

#include "core/cuda/kernel/map.cuh"
#include "core/tensor_backend.h"

namespace tessera::cuda {
namespace {

struct Identity {
  template <class T>
  __device__ T operator()(T x) const { return x; }
};

constexpr unsigned kTile = 32;
constexpr unsigned kTileRows = 8;

// `from` is the axis along which the source has stride 1, `to` the one of the target. `others` are the remaining axes.
struct Transpose {
  StridedOffsets<2> others;
  std::uint32_t size_from, size_to;
  std::uint32_t stride_to;  // stride of the source along `to`
  std::uint32_t stride_from;  // stride of the target along `from`
  Divisor tiles_from, tiles_to;
};

template <class T>
__global__ void __launch_bounds__(kTile * kTileRows)
    transpose_kernel(const __grid_constant__ Transpose t, const T* source, T* target) {
  __shared__ T tile[kTile][kTile + 1];  // the odd pitch avoids bank conflicts when columns are read
  const std::uint32_t above = t.tiles_from.quotient(blockIdx.x);
  const std::uint32_t other = t.tiles_to.quotient(above);
  const std::uint32_t from = (blockIdx.x - above * t.tiles_from.divisor) * kTile;
  const std::uint32_t to = (above - other * t.tiles_to.divisor) * kTile;
  std::uint32_t at[2];
  t.others.of(other, at);
  for (std::uint32_t row = threadIdx.y; row < kTile; row += kTileRows) {
    if (to + row < t.size_to && from + threadIdx.x < t.size_from) {
      tile[row][threadIdx.x] = source[at[0] + (to + row) * t.stride_to + from + threadIdx.x];
    }
  }
  __syncthreads();
  for (std::uint32_t row = threadIdx.y; row < kTile; row += kTileRows) {
    if (from + row < t.size_from && to + threadIdx.x < t.size_to) {
      target[at[1] + (from + row) * t.stride_from + to + threadIdx.x] = tile[threadIdx.x][row];
    }
  }
}

// The axis along which the operand has stride 1 and at least half a tile of elements. -1 if there is none.
int neighbours(const StridedLoop<2>& loop, std::size_t operand) {
  for (int axis = 0; axis < loop.rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (loop.strides[operand][at] == 1 && loop.sizes[at] >= kTile / 2) return axis;
  }
  return -1;
}

Transpose make_transpose(const StridedLoop<2>& loop, std::size_t from, std::size_t to) {
  StridedLoop<2> others;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(loop.rank); ++axis) {
    if (axis == from || axis == to) continue;
    const auto at = static_cast<std::size_t>(others.rank++);
    others.sizes[at] = loop.sizes[axis];
    for (std::size_t k = 0; k < 2; ++k) others.strides[k][at] = loop.strides[k][axis];
  }
  if (others.rank == 0) {
    others.rank = 1;
    others.sizes[0] = 1;
  }
  Transpose t;
  t.others = strided_offsets(others, 1);
  t.size_from = static_cast<std::uint32_t>(loop.sizes[from]);
  t.size_to = static_cast<std::uint32_t>(loop.sizes[to]);
  t.stride_to = static_cast<std::uint32_t>(loop.strides[0][to]);
  t.stride_from = static_cast<std::uint32_t>(loop.strides[1][from]);
  t.tiles_from = Divisor((t.size_from + kTile - 1) / kTile);
  t.tiles_to = Divisor((t.size_to + kTile - 1) / kTile);
  return t;
}

// Elements are copied as unsigned integers of the same size.
template <class Raw>
void copy_raw(Device device, const StridedLoop<2>& whole, const Raw* source, Raw* target) {
  for_each_part<2>(whole, {}, [&](const StridedLoop<2>& loop, const std::array<std::int64_t, 2>& at) {
    const int from = neighbours(loop, 0);
    const int to = neighbours(loop, 1);
    if (from < 0 || to < 0 || from == to) {
      StridedLoop<2> swapped = loop;  // the map writes operand 0
      std::swap(swapped.strides[0], swapped.strides[1]);
      const Raw* const x = source + at[0];
      return detail::map_loop("copy", device, Identity{}, swapped, target + at[1], std::index_sequence<0>(), x);
    }
    const Transpose t = make_transpose(loop, static_cast<std::size_t>(from), static_cast<std::size_t>(to));
    const LaunchShape shape{dim3(t.others.items * t.tiles_from.divisor * t.tiles_to.divisor), dim3(kTile, kTileRows)};
    launch("copy", device, shape, transpose_kernel<Raw>, t, source + at[0], target + at[1]);
  });
}

void copy_same(const Tensor& source, const Tensor& target) {
  const auto loop = make_strided_loop<2>({&source, &target});
  const auto run = [&]<class Raw>() {
    copy_raw(target.device(), loop, static_cast<const Raw*>(source.raw()), static_cast<Raw*>(target.raw()));
  };
  switch (size_of(target.dtype())) {
    case 1: return run.template operator()<std::uint8_t>();
    case 2: return run.template operator()<std::uint16_t>();
    case 4: return run.template operator()<std::uint32_t>();
    default: return run.template operator()<std::uint64_t>();
  }
}

}  // namespace

void strided_copy(const Tensor& source, const Tensor& target) {
  if (source.numel() == 0) return;
  if (source.dtype() == target.dtype()) return copy_same(source, target);
  dispatch_all(source.dtype(), [&]<class From>() {
    dispatch_all(target.dtype(), [&]<class To>() {
      if constexpr (!std::is_same_v<From, To>) map_as(MapTypes<To, From>(), "convert", Identity{}, target, source);
    });
  });
}

}  // namespace tessera::cuda

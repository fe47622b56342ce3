// SDDMM after Gale et al., "Sparse GPU kernels for deep learning" (SC 2020). A subwarp sums neighbouring kept elements of one row
// over the positions, and adds up its lanes at the end. Splits of the positions are added up in order.
#include <cstdint>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/kernel/reduce.cuh"
#include "core/cuda/sparse/kernels.h"
#include "core/cuda/sparse/reader.cuh"
#include "core/support/rounding.h"

namespace tessera::cuda::sparse {
namespace {

// Blocks per processor, few enough to leave registers for either kind of kernel.
template <bool kGathers>
constexpr int kResident = kGathers ? 6 : 8;

struct Place {
  std::int64_t row;  // offset of the row of x, in elements
  std::int32_t tap;
};

template <class T, bool kGathers>
__global__ void __launch_bounds__(kThreads, kResident<kGathers>)
    sum_dots_kernel(const __grid_constant__ DotProblem<T, Compute<T>> p) {
  using Number = Compute<T>;
  __shared__ Place places[kSubwarps][kChunk];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, subwarp = static_cast<int>(threadIdx.x) / kLanes;
  const auto groups = static_cast<unsigned>(ceil_div(p.chunk_count, kSubwarps));
  const std::int64_t split = blockIdx.x / groups;
  const std::int64_t chunk = std::int64_t{blockIdx.x % groups} * kSubwarps + subwarp;
  const bool any = chunk < p.chunk_count;
  const std::int32_t row = any ? p.chunks[2 * chunk] : 0;
  const std::int32_t first = any ? p.chunks[2 * chunk + 1] : 0;
  const int count = any ? min(kChunk, p.elements.offsets[row + 1] - first) : 0;
  for (int i = lane; i < count; i += kLanes) {
    const std::int32_t column = p.elements.indices[first + i];
    const std::int32_t tap = column / p.elements.width;
    places[subwarp][i] = {(column - tap * p.elements.width) * p.x_pitch, tap};
  }
  __syncwarp();
  Reader<T, kGathers> source(p.sources, lane);
  Number sums[kChunk] = {};
  const std::int64_t begin = split * p.strips_of_split;
  const std::int64_t end = min(p.strips, begin + p.strips_of_split);
  for (std::int64_t strip = begin; strip < end && any; ++strip) {
    source.go_to(strip);
    const auto factor = source.own(p.y + row * p.y_pitch);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      if (i >= count) break;
      const Place place = places[subwarp][i];
      const auto some = source.read(p.x + place.row, place.tap);
#pragma unroll
      for (int j = 0; j < kEach<T>; ++j) sums[i] += factor.at[j] * some.at[j];
    }
  }
#pragma unroll
  for (int i = 0; i < kChunk; ++i) {
    const Number sum = warp_reduce<kLanes>(sums[i], Plus());
    if (i < count && lane == i % kLanes) p.sums[split * p.count + first + i] = sum;
  }
}

template <class T, bool kGathers>
void launch_dots(const DotProblem<T, Compute<T>>& p, Device device) {
  const auto groups = ceil_div(std::int64_t{p.chunk_count}, kSubwarps);
  const auto splits = ceil_div(p.strips, p.strips_of_split);
  launch("sparse_dots", device, {dim3(static_cast<unsigned>(groups * splits)), dim3(kThreads)}, sum_dots_kernel<T, kGathers>, p);
}

}  // namespace

void sum_dots(const Matrix& matrix, const Matrix::Rows& rows, const Panels& panels, std::int64_t steps_of_split,
              const Tensor& sums) {
  dispatch_numbers(panels.x.dtype(), "sparse_dots", [&]<class T>() {
    const DotProblem<T, Compute<T>> problem{gradient_problem<T>(matrix, panels, sums), rows.chunks.data<std::int32_t>(),
                                            static_cast<std::int32_t>(rows.chunks.dim(0)), panels.y.dim(1) / kStrip<T>,
                                            steps_of_split * (kPanelStep / kStrip<T>)};
    panels.pixels.defined() ? launch_dots<T, true>(problem, sums.device()) : launch_dots<T, false>(problem, sums.device());
  });
}

}  // namespace tessera::cuda::sparse

// SpMM after Gale et al., "Sparse GPU kernels for deep learning" (SC 2020): one-dimensional tiles, rows sorted by length, a tile
// of kept elements in shared memory. Every sum runs along its row, in the order of the columns.
#include <cstdint>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/sparse/kernels.h"
#include "core/cuda/sparse/reader.cuh"
#include "core/support/rounding.h"

namespace tessera::cuda::sparse {
namespace {

constexpr int kTile = 32;  // kept elements of a row in shared memory
constexpr int kRowsOfWarp = 32 / kLanes;
constexpr int kResident = 6;  // blocks per processor, with registers for the loads of four elements

template <class Number>
struct Kept {
  Number value;
  std::int32_t tap;
  std::int64_t row;  // offset of the row of x, in elements
};

struct Span {
  std::int32_t begin, end;
};

// The elements of row order[at]. Empty after the last row.
template <class Problem>
__device__ Span span_of(const Problem& p, std::int64_t at) {
  if (at >= p.row_count) return {0, 0};
  const std::int32_t row = p.order[at];
  return {p.elements.offsets[row], p.elements.offsets[row + 1]};
}

template <class T, class Number>
__device__ void stage(const RowProblem<T, Number>& p, int lane, std::int32_t first, std::int32_t end, Kept<Number>* tile) {
#pragma unroll
  for (int i = lane; i < kTile; i += kLanes) {
    if (first + i >= end) break;
    const std::int32_t column = p.elements.indices[first + i];
    const std::int32_t tap = column / p.elements.width;
    tile[i] = {p.values[first + i], tap, (column - tap * p.elements.width) * p.x_pitch};
  }
}

template <class T, class Number, class Source>
__device__ void add(const Kept<Number>& kept, const T* x, Source& source, Number (&sums)[kEach<T>]) {
  const auto some = source.read(x + kept.row, kept.tap);
#pragma unroll
  for (int j = 0; j < kEach<T>; ++j) sums[j] += kept.value * some.at[j];
}

template <class T, bool kGathers>
__global__ void __launch_bounds__(kThreads, kResident) multiply_rows_kernel(const __grid_constant__ RowProblem<T, Compute<T>> p) {
  using Number = Compute<T>;
  __shared__ Kept<Number> tiles[kSubwarps][kTile];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, subwarp = static_cast<int>(threadIdx.x) / kLanes;
  const auto groups = static_cast<unsigned>(ceil_div(p.row_count, kSubwarps));
  const std::int64_t first_row = std::int64_t{blockIdx.x % groups} * kSubwarps;
  const Span mine = span_of(p, first_row + subwarp);
  // The warp's first row has the most elements. All lanes of the warp loop as often as that row needs.
  const Span longest = span_of(p, first_row + subwarp / kRowsOfWarp * kRowsOfWarp);
  Kept<Number>* const tile = tiles[subwarp];
  Reader<T, kGathers> source(p.sources, lane);
  source.go_to(blockIdx.x / groups);
  Number sums[kEach<T>] = {};
  for (std::int32_t done = 0; done < longest.end - longest.begin; done += kTile) {
    const std::int32_t first = mine.begin + done;
    stage(p, lane, first, mine.end, tile);
    __syncwarp();
    const std::int32_t left = mine.end - first;
    if (left >= kTile) {
#pragma unroll 4
      for (int i = 0; i < kTile; ++i) add(tile[i], p.x, source, sums);
    } else {
#pragma unroll 1
      for (int i = 0; i < left; ++i) add(tile[i], p.x, source, sums);
    }
    __syncwarp();
  }
  if (first_row + subwarp >= p.row_count) return;
  const std::int32_t row = p.order[first_row + subwarp];
  const Number bias = p.bias != nullptr ? p.bias[row] : Number{0};
  typename Reader<T, kGathers>::Some result;
#pragma unroll
  for (int j = 0; j < kEach<T>; ++j) {
    const Number sum = sums[j] + bias;
    result.at[j] = p.relu && sum < 0 ? Number{0} : sum;
  }
  source.store(p.y + row * p.y_pitch, result);
}

template <class T, bool kGathers>
void launch_rows(const RowProblem<T, Compute<T>>& p, Device device) {
  const auto groups = ceil_div(std::int64_t{p.row_count}, kSubwarps);
  const auto strips = p.y_pitch / kStrip<T>;
  launch("sparse_rows", device, {dim3(static_cast<unsigned>(groups * strips)), dim3(kThreads)}, multiply_rows_kernel<T, kGathers>,
         p);
}

}  // namespace

void multiply_rows(const Matrix& matrix, const Matrix::Rows& rows, const Tensor& values, const Panels& panels, const Tensor& bias,
                   bool relu) {
  dispatch_numbers(panels.x.dtype(), "sparse_rows", [&]<class T>() {
    const RowProblem<T, Compute<T>> problem{product_problem<T>(matrix, values, panels, bias, relu),
                                            rows.order.data<std::int32_t>(), static_cast<std::int32_t>(rows.order.numel())};
    panels.pixels.defined() ? launch_rows<T, true>(problem, panels.x.device())
                            : launch_rows<T, false>(problem, panels.x.device());
  });
}

}  // namespace tessera::cuda::sparse

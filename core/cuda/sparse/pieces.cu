// Rows that keep the same columns, as small dense products. A block computes a piece at one strip of positions or, for gradients,
// a tile of a piece's columns over a share of the positions. Gathered rows of a panel are contiguous in memory, so that columns
// which are not kept cost nothing (after Guo et al., "Accelerating sparse DNN models without hardware-support via tile-wise
// sparsity", SC 2020).
#include <cstddef>
#include <cstdint>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/sparse/kernels.h"
#include "core/cuda/sparse/piece_dots.cuh"
#include "core/cuda/sparse/piece_products.cuh"
#include "core/support/rounding.h"

namespace tessera::cuda::sparse {
namespace {

// Copies the weights of a piece, with zeros for rows that the piece lacks and for columns after its last.
template <class Number>
__device__ void stage_weights(const Elements& elements, const std::int32_t* rows, const Number* values, std::int32_t first,
                              int count, Number* weights) {
  for (int i = static_cast<int>(threadIdx.x); i < kPieceRows * kPieceColumns; i += kThreads) {
    const int m = i / kPieceColumns, k = i % kPieceColumns;
    const bool kept = k < count && rows[m] >= 0;
    weights[m * kWeightPitch + k] = kept ? values[elements.offsets[rows[m]] + first + k] : Number{0};
  }
}

template <class T, bool kGathers>
__global__ void __launch_bounds__(kThreads) multiply_pieces_kernel(const __grid_constant__ PieceProblem<T, Compute<T>> p) {
  using Number = Compute<T>;
  __shared__ __align__(16) Number weights[kPieceRows * kWeightPitch];
  __shared__ __align__(16) std::byte tile[kPieceColumns * kPitch * sizeof(T)];
  const std::int32_t* const rows = p.pieces + std::int64_t{blockIdx.x % p.piece_count} * kPieceRows;
  const std::int64_t position = std::int64_t{blockIdx.x / p.piece_count} * kPositions;
  const std::int32_t begin = p.elements.offsets[rows[0]], end = p.elements.offsets[rows[0] + 1];
  Products<T> products;
  for (std::int32_t first = begin; first < end; first += kPieceColumns) {
    const int count = min(kPieceColumns, end - first);
    stage_weights(p.elements, rows, p.values, first - begin, count, weights);
    stage_source<T, kGathers>(tile, p.elements, p.sources, p.x, p.x_pitch, first, count, position);
    __syncthreads();
    products.add(weights, tile);
    __syncthreads();
  }
  products.for_each([&](int m, int at, Number sum) {
    const std::int32_t row = rows[m];
    if (row < 0) return;
    if (p.bias != nullptr) sum += p.bias[row];
    p.y[row * p.y_pitch + position + at] = element_of<T>(p.relu && sum < 0 ? Number{0} : sum);
  });
}

template <class T, bool kGathers>
__global__ void __launch_bounds__(kThreads) sum_pieces_kernel(const __grid_constant__ PieceDotProblem<T, Compute<T>> p) {
  using Number = Compute<T>;
  __shared__ __align__(16) std::byte left[kPieceRows * kPitch * sizeof(T)];
  __shared__ __align__(16) std::byte right[kPieceColumns * kPitch * sizeof(T)];
  const std::int64_t split = blockIdx.x / p.tile_count;
  const std::int32_t* const tile = p.tiles + 2 * std::int64_t{blockIdx.x % p.tile_count};
  const std::int32_t* const rows = p.pieces + std::int64_t{tile[0]} * kPieceRows;
  const std::int32_t first = p.elements.offsets[rows[0]] + tile[1];
  const int count = min(kPieceColumns, p.elements.offsets[rows[0] + 1] - first);
  Dots<T> dots;
  const std::int64_t end = min(p.steps, (split + 1) * p.steps_of_split);
  for (std::int64_t step = split * p.steps_of_split; step < end; ++step) {
    const std::int64_t position = step * kPositions;
    stage_rows<T, kPieceRows>(left, position, [&](int m) { return rows[m] < 0 ? nullptr : p.y + rows[m] * p.y_pitch; });
    stage_source<T, kGathers>(right, p.elements, p.sources, p.x, p.x_pitch, first, count, position);
    __syncthreads();
    dots.add(left, right);
    __syncthreads();
  }
  dots.for_each([&](int m, int k, Number sum) {
    if (rows[m] >= 0 && k < count) p.sums[split * p.count + p.elements.offsets[rows[m]] + tile[1] + k] = sum;
  });
}

}  // namespace

void multiply_pieces(const Matrix& matrix, const Tensor& values, const Panels& panels, const Tensor& bias, bool relu) {
  dispatch_numbers(panels.x.dtype(), "sparse_pieces", [&]<class T>() {
    const PieceProblem<T, Compute<T>> problem{product_problem<T>(matrix, values, panels, bias, relu),
                                              matrix.pieces.data<std::int32_t>(), static_cast<unsigned>(matrix.pieces.dim(0))};
    const auto blocks = static_cast<unsigned>(matrix.pieces.dim(0) * (problem.y_pitch / kPositions));
    const LaunchShape shape{dim3(blocks), dim3(kThreads)};
    const auto start = [&](auto kernel) { launch("sparse_pieces", panels.x.device(), shape, kernel, problem); };
    panels.pixels.defined() ? start(multiply_pieces_kernel<T, true>) : start(multiply_pieces_kernel<T, false>);
  });
}

void sum_pieces(const Matrix& matrix, const Panels& panels, std::int64_t steps_of_split, const Tensor& sums) {
  dispatch_numbers(panels.x.dtype(), "sparse_piece_dots", [&]<class T>() {
    const PieceDotProblem<T, Compute<T>> problem{
        gradient_problem<T>(matrix, panels, sums),  matrix.pieces.data<std::int32_t>(), matrix.tiles.data<std::int32_t>(),
        static_cast<unsigned>(matrix.tiles.dim(0)), panels.y.dim(1) / kPositions,       steps_of_split};
    const LaunchShape shape{dim3(static_cast<unsigned>(matrix.tiles.dim(0) * sums.dim(0))), dim3(kThreads)};
    const auto start = [&](auto kernel) { launch("sparse_piece_dots", panels.x.device(), shape, kernel, problem); };
    panels.pixels.defined() ? start(sum_pieces_kernel<T, true>) : start(sum_pieces_kernel<T, false>);
  });
}

}  // namespace tessera::cuda::sparse

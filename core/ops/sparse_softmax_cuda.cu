#include <algorithm>

#include "core/cuda/kernel/softmax_row.cuh"
#include "core/ops/sparse_softmax.h"

namespace tessera::cuda {
namespace {

// Few warps per block: rows have unequal lengths, and a block lasts as long as its longest row.
constexpr unsigned kBlock = 64;
constexpr int kHeld = 8;  // elements of a row that a thread keeps in registers; longer rows are read again

// One warp per row. Each entry of the batch has `rows` rows and `count` elements. All lanes of a warp take the same branch, as
// the reductions require.
template <class Op>
__global__ void __launch_bounds__(kBlock)
    sparse_rows_kernel(const Op op, const std::int64_t* offsets, std::int64_t rows, std::int64_t count, std::int64_t all_rows) {
  const std::int64_t lane = threadIdx.x % 32;
  for (std::int64_t item = first_item() / 32; item < all_rows; item += item_stride() / 32) {
    const std::int64_t row = item % rows;
    const std::int64_t entry = item / rows * count;
    const std::int64_t begin = entry + offsets[row], end = entry + offsets[row + 1];
    if (end - begin <= 32 * kHeld)
      op(RowWalk<32, 1, kHeld>{item, begin + lane, end, lane}, true);
    else
      op(RowWalk<32, 1, 0>{item, begin + lane, end, lane}, true);
  }
}

template <class Op>
void launch_sparse_rows(const char* operation, const Tensor& y, const Tensor& offsets, const Op& op) {
  const std::int64_t rows = offsets.numel() - 1, count = y.dim(-1);
  const std::int64_t all_rows = y.numel() / count * rows;
  const std::int64_t blocks = std::min<std::int64_t>((all_rows * 32 + kBlock - 1) / kBlock, 0x7fffffff);
  launch(operation, y.device(), {dim3(static_cast<unsigned>(blocks)), dim3(kBlock)}, sparse_rows_kernel<Op>, op,
         offsets.data<std::int64_t>(), rows, count, all_rows);
}

}  // namespace

void sparse_softmax_forward(const Tensor& x, const Tensor& offsets, double scale, const Tensor& y) {
  dispatch_numbers(x.dtype(), "sparse_softmax", [&]<class T>() {
    const SoftmaxForward<T, false> op{x.data<T>(), y.data<T>(), static_cast<Compute<T>>(scale)};
    launch_sparse_rows("sparse_softmax", y, offsets, op);
  });
}

void sparse_softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& offsets, double scale, const Tensor& grad_x) {
  dispatch_numbers(y.dtype(), "sparse_softmax_backward", [&]<class T>() {
    const SoftmaxBackward<T, false> op{y.data<T>(), grad_y.data<T>(), grad_x.data<T>(), static_cast<Compute<T>>(scale)};
    launch_sparse_rows("sparse_softmax_backward", y, offsets, op);
  });
}

}  // namespace tessera::cuda

#include <algorithm>

#include "core/cpu/in_f32.h"
#include "core/cpu/parallel.h"
#include "core/ops/exp_row_cpu.h"
#include "core/ops/sparse_softmax.h"

namespace tessera::cpu {
namespace {

// Calls row(begin, n) for the non-empty rows of every entry of the batch. Rows have unequal lengths, so threads get equal shares
// of the elements. A row belongs to the thread in whose share it begins.
template <class Row>
void for_each_sparse_row(std::int64_t numel, const Tensor& offsets, Row&& row) {
  const std::int64_t rows = offsets.numel() - 1;
  const std::int64_t* const at = offsets.data<std::int64_t>();
  const std::int64_t count = at[rows];
  parallel_for(numel, kGrain / 4, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t entry = begin / count;
    std::int64_t r = std::lower_bound(at, at + rows, begin - entry * count) - at;
    for (; entry * count < end; ++entry, r = 0) {
      for (; r < rows && entry * count + at[r] < end; ++r) {
        if (at[r + 1] > at[r]) row(entry * count + at[r], at[r + 1] - at[r]);
      }
    }
  });
}

}  // namespace

void sparse_softmax_forward(const Tensor& x, const Tensor& offsets, double scale, const Tensor& y) {
  if (x.dtype() == DType::bf16) {
    return in_f32([&](const Tensor& wide, const Tensor& to) { sparse_softmax_forward(wide, offsets, scale, to); }, y, x);
  }
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(y.bytes()));
  dispatch_real(x.dtype(), "sparse_softmax", [&]<class T>() {
    for_each_sparse_row(x.numel(), offsets, [&](std::int64_t begin, std::int64_t n) {
      const T* const from = x.data<T>() + begin;
      T* const to = y.data<T>() + begin;
      std::transform(from, from + n, to, [factor = static_cast<T>(scale)](T value) { return factor * value; });
      softmax_row(to, n, stores, to);
    });
  });
}

void sparse_softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& offsets, double scale, const Tensor& grad_x) {
  if (y.dtype() == DType::bf16) {
    return in_f32(
        [&](const Tensor& wide, const Tensor& g, const Tensor& to) { sparse_softmax_backward(wide, g, offsets, scale, to); },
        grad_x, y, grad_y);
  }
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(grad_x.bytes()));
  dispatch_real(y.dtype(), "sparse_softmax_backward", [&]<class T>() {
    for_each_sparse_row(y.numel(), offsets, [&](std::int64_t begin, std::int64_t n) {
      softmax_backward_row(y.data<T>() + begin, grad_y.data<T>() + begin, n, static_cast<T>(scale), stores,
                           grad_x.data<T>() + begin);
    });
  });
}

}  // namespace tessera::cpu

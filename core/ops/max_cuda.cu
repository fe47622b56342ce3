#include <cstdint>
#include <limits>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/row_kernel.cuh"
#include "core/ops/reduce.h"

namespace tessera::cuda {
namespace {

template <class C>
struct Best {
  C value;
  std::int64_t index;

  static constexpr Best none() {
    return {-std::numeric_limits<C>::infinity(), std::numeric_limits<std::int64_t>::max()};
  }
};

// The first NaN wins. Without a NaN, the first of the largest values wins.
struct JoinBest {
  template <class C>
  __device__ Best<C> operator()(const Best<C>& a, const Best<C>& b) const {
    const bool a_is_nan = a.value != a.value;
    const bool b_is_nan = b.value != b.value;
    const bool equal = (a_is_nan && b_is_nan) || a.value == b.value;
    const bool b_wins = equal ? b.index < a.index : b_is_nan || (!a_is_nan && b.value > a.value);
    return b_wins ? b : a;
  }
};

template <class T>
struct MaxTarget {
  const T* x;
  T* y;
  std::int64_t* index;

  __device__ void write(std::int64_t row, const T* from, std::int64_t best) const {
    index[row] = best;
    y[row] = from[best];
  }
};

template <class T>
struct RowMaximum {
  using C = Compute<T>;
  MaxTarget<T> target;
  std::int64_t n;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool inside) const {
    auto best = Best<C>::none();
    walk.for_each([&](int, std::int64_t at) {
      const auto values = Numbers<T, Walk::kPack>::load(target.x + at);
      for (int i = 0; i < Walk::kPack; ++i) best = JoinBest()(best, Best<C>{values.at[i], walk.column_of(at) + i});
    });
    best = Walk::reduce(best, JoinBest());
    if (inside && walk.first()) target.write(walk.row, target.x + walk.row * n, best.index);
  }
};

// For a long row that the whole chip reduces.
template <class T>
struct MaxItem {
  const T* x;
  __device__ Best<Compute<T>> operator()(std::int64_t i) const { return {number_of(x[i]), i}; }
};
template <class T>
struct MaxFinish {
  MaxTarget<T> target;
  std::int64_t row;
  std::int64_t n;
  __device__ void operator()(const Best<Compute<T>>& best) const { target.write(row, target.x + row * n, best.index); }
};

inline constexpr std::int64_t kLongRow = 1 << 16;
inline constexpr std::int64_t kFewRows = 16;

template <class T>
__global__ void max_backward_kernel(const T* grad_y, const std::int64_t* index, std::int64_t rows, std::int64_t n, T* grad_x) {
  for (std::int64_t row = first_item(); row < rows; row += item_stride()) grad_x[row * n + index[row]] = grad_y[row];
}

}  // namespace

void max_forward(const Tensor& x, const Tensor& y, const Tensor& index) {
  const std::int64_t rows = index.numel();
  if (rows == 0) return;
  const std::int64_t n = x.numel() / rows;
  dispatch_numbers(x.dtype(), "max", [&]<class T>() {
    const MaxTarget<T> target{x.data<T>(), y.data<T>(), index.data<std::int64_t>()};
    if (n < kLongRow || rows > kFewRows) {
      return launch_rows<T>("max", x.device(), rows, n, all_aligned(x), RowMaximum<T>{target, n});
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      reduce_items("max", x.device(), n, Best<Compute<T>>::none(), MaxItem<T>{target.x + row * n}, JoinBest(),
                   MaxFinish<T>{target, row, n});
    }
  });
}

void max_backward(const Tensor& grad_y, const Tensor& index, const Tensor& grad_x) {
  const std::int64_t rows = index.numel();
  if (rows == 0) return;
  grad_x.fill(0.0);
  const Tensor g = grad_y.contiguous();
  dispatch_numbers(grad_x.dtype(), "max_backward", [&]<class T>() {
    launch("max_backward", grad_x.device(), grid_for(rows, grad_x.device()), max_backward_kernel<T>, g.data<T>(),
           index.data<std::int64_t>(), rows, grad_x.numel() / rows, grad_x.data<T>());
  });
}

}  // namespace tessera::cuda

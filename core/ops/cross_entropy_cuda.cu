#include "core/cuda/kernel/exp_sum.cuh"
#include "core/cuda/kernel/row_kernel.cuh"
#include "core/ops/cross_entropy.h"

namespace tessera::cuda {
namespace {

// Writes the loss of each row: 0 if the label is ignored, NaN if it names no class. Also writes the row's largest logit and the
// sum of its exponentials.
template <class T>
struct RowLosses {
  using Pieces = void;
  const T* x;
  const std::int64_t* labels;
  std::int64_t ignored;
  double smoothing;
  std::int64_t classes;
  T* tops;
  T* totals;
  double* losses;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool inside) const {
    if constexpr (Walk::kPacks > 0) held(walk, inside);
    else streamed(walk, inside);
  }

  template <class Walk>
  __device__ void held(const Walk& walk, bool inside) const {
    Numbers<T, Walk::kPack> v[Walk::kPacks];
    walk.for_each([&](int k, std::int64_t at) { v[k] = Numbers<T, Walk::kPack>::load(x + at); });
    T top = -static_cast<T>(INFINITY);
    walk.for_each([&](int k, std::int64_t) {
      for (const T value : v[k].at) top = larger(top, value);
    });
    top = Walk::reduce(top, Larger());
    T total = 0;
    double shifted = 0;
    walk.for_each([&](int k, std::int64_t) {
      for (const T value : v[k].at) {
        const T below = value - top;
        if (smoothing != 0) shifted += static_cast<double>(below);
        total += exp(below);
      }
    });
    total = Walk::reduce(total, Plus());
    finish(walk, inside, top, static_cast<double>(total), shifted);
  }

  template <class Walk>
  __device__ void streamed(const Walk& walk, bool inside) const {
    auto sum = ExpSum<T>::none();
    walk.for_each_piece([&]<int kWidth>(int, std::int64_t at) { sum.add(Numbers<T, kWidth>::load(x + at)); });
    sum = Walk::reduce(sum, JoinExpSums());
    double shifted = 0;
    if (smoothing != 0) {
      walk.for_each_piece([&]<int kWidth>(int, std::int64_t at) {
        const auto v = Numbers<T, kWidth>::load(x + at);
        for (const T value : v.at) shifted += static_cast<double>(value - sum.top);
      });
    }
    finish(walk, inside, sum.top, sum.total, shifted);
  }

  template <class Walk>
  __device__ void finish(const Walk& walk, bool inside, T top, double total, double shifted) const {
    if (smoothing != 0) shifted = Walk::reduce(shifted, Plus());
    if (!inside || !walk.first()) return;
    losses[walk.row] = row_loss(walk.row, top, log(total), shifted);
    tops[walk.row] = top;
    totals[walk.row] = static_cast<T>(total);
  }
  __device__ double row_loss(std::int64_t row, T top, double log_total, double shifted) const {
    const std::int64_t label = labels[row];
    if (label == ignored) return 0;
    if (label < 0 || label >= classes) return NAN;
    const double picked = log_total - static_cast<double>(x[row * classes + label] - top);
    if (smoothing == 0) return picked;  // 0 * inf would turn a class of probability 0 into NaN
    return (1 - smoothing) * picked + smoothing * (log_total - shifted / static_cast<double>(classes));
  }
};

struct Counted {
  double sum;
  double count;
};
struct JoinCounted {
  __device__ Counted operator()(const Counted& a, const Counted& b) const { return {a.sum + b.sum, a.count + b.count}; }
};
struct CountedLoss {
  const double* losses;
  const std::int64_t* labels;
  std::int64_t ignored;
  __device__ Counted operator()(std::int64_t row) const {
    if (labels[row] == ignored) return {0, 0};
    return {losses[row], 1};
  }
};
template <class T>
struct StoreLoss {
  T* loss;
  __device__ void operator()(const Counted& all) const { *loss = static_cast<T>(all.count == 0 ? 0 : all.sum / all.count); }
};

struct CountOne {
  const std::int64_t* labels;
  std::int64_t ignored;
  __device__ double operator()(std::int64_t row) const { return labels[row] == ignored ? 0 : 1; }
};
struct StoreCount {
  double* counted;
  __device__ void operator()(double count) const { *counted = count; }
};

template <class T>
struct RowGradients {
  using Pieces = void;
  const T* grad_loss;
  const double* counted;
  const T* x;
  const T* tops;
  const T* totals;
  const std::int64_t* labels;
  std::int64_t ignored;
  std::int64_t classes;
  T even;  // target that smoothing gives every class
  T picked;
  T* grad;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool inside) const {
    const std::int64_t label = inside ? labels[walk.row] : ignored;
    const bool counts = label != ignored;
    const bool legal = label >= 0 && label < classes;
    const T scale = *counted == 0 ? T(0) : *grad_loss / static_cast<T>(*counted);
    const T top = inside ? tops[walk.row] : T(0);
    const T share = inside ? 1 / totals[walk.row] : T(0);
    walk.for_each_piece([&]<int kWidth>(int, std::int64_t at) {
      auto v = Numbers<T, kWidth>::load(x + at);
      for (int i = 0; i < kWidth; ++i) {
        T value = scale * (exp(v.at[i] - top) * share - even);
        if (walk.column_of(at) + i == label) value -= scale * picked;
        if (!legal) value = static_cast<T>(NAN);
        v.at[i] = counts ? value : T(0);
      }
      v.store(grad + at);
    });
  }
};

}  // namespace

void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options, const Tensor& row_sums,
                           const Tensor& loss) {
  const std::int64_t n = logits.dim(0);
  const Device device = logits.device();
  const Tensor losses = states_on<double>(device, n);
  double* const of_rows = static_cast<double*>(losses.raw());
  const std::int64_t* const label = labels.data<std::int64_t>();
  dispatch_real(logits.dtype(), "cross_entropy", [&]<class T>() {
    const RowLosses<T> op{.x = logits.data<T>(),
                          .labels = label,
                          .ignored = options.ignore_index,
                          .smoothing = options.label_smoothing,
                          .classes = logits.dim(1),
                          .tops = row_sums.data<T>(),
                          .totals = row_sums.data<T>() + n,
                          .losses = of_rows};
    launch_rows<T>("cross_entropy", device, n, logits.dim(1), all_aligned(logits), op);
    reduce_items("cross_entropy", device, n, Counted{}, CountedLoss{of_rows, label, options.ignore_index}, JoinCounted(),
                 StoreLoss<T>{loss.data<T>()});
  });
}

void cross_entropy_backward(const Tensor& grad_loss, const Tensor& logits, const Tensor& row_sums, const Tensor& labels,
                            const CrossEntropyOptions& options, const Tensor& grad_logits) {
  const std::int64_t n = logits.dim(0);
  const std::int64_t classes = logits.dim(1);
  const Device device = logits.device();
  const Tensor counted = states_on<double>(device, 1);
  double* const count = static_cast<double*>(counted.raw());
  const std::int64_t* const label = labels.data<std::int64_t>();
  reduce_items("cross_entropy_backward", device, n, 0.0, CountOne{label, options.ignore_index}, Plus(), StoreCount{count});
  dispatch_real(logits.dtype(), "cross_entropy_backward", [&]<class T>() {
    const RowGradients<T> op{.grad_loss = grad_loss.data<T>(),
                             .counted = count,
                             .x = logits.data<T>(),
                             .tops = row_sums.data<T>(),
                             .totals = row_sums.data<T>() + n,
                             .labels = label,
                             .ignored = options.ignore_index,
                             .classes = classes,
                             .even = static_cast<T>(options.label_smoothing / static_cast<double>(classes)),
                             .picked = static_cast<T>(1.0 - options.label_smoothing),
                             .grad = grad_logits.data<T>()};
    launch_rows<T>("cross_entropy_backward", device, n, classes, all_aligned(logits, grad_logits), op);
  });
}

}  // namespace tessera::cuda

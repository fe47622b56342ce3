#include "core/cuda/kernel/exp_sum.cuh"
#include "core/cuda/kernel/row_kernel.cuh"
#include "core/ops/cross_entropy.h"

namespace tessera::cuda {
namespace {

// The loss of each row, 0 where it does not count and NaN where the label names no class; its probabilities, if there is memory
// for them.
template <class T>
struct RowLosses {
  const T* x;
  const std::int64_t* labels;
  std::int64_t ignored;
  double smoothing;
  std::int64_t classes;
  T* probabilities;
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
      for (T& value : v[k].at) {
        value -= top;
        if (smoothing != 0) shifted += static_cast<double>(value);
        value = exp(value);
        total += value;
      }
    });
    total = Walk::reduce(total, Plus());
    if (probabilities != nullptr) {
      const T share = 1 / total;
      walk.for_each([&](int k, std::int64_t at) {
        for (T& value : v[k].at) value *= share;
        v[k].store(probabilities + at);
      });
    }
    finish(walk, inside, top, static_cast<double>(total), shifted);
  }

  template <class Walk>
  __device__ void streamed(const Walk& walk, bool inside) const {
    auto sum = ExpSum<T>::none();
    walk.for_each([&](int, std::int64_t at) { sum.add(Numbers<T, Walk::kPack>::load(x + at)); });
    sum = Walk::reduce(sum, JoinExpSums());
    const T share = static_cast<T>(1 / sum.total);
    double shifted = 0;
    const auto store_and_add = [&](int, std::int64_t at) {
      auto v = Numbers<T, Walk::kPack>::load(x + at);
      for (T& value : v.at) {
        value -= sum.top;
        shifted += static_cast<double>(value);
        value = exp(value) * share;
      }
      if (probabilities != nullptr) v.store(probabilities + at);
    };
    if (probabilities != nullptr || smoothing != 0) walk.for_each(store_and_add);
    finish(walk, inside, sum.top, sum.total, shifted);
  }

  template <class Walk>
  __device__ void finish(const Walk& walk, bool inside, T top, double total, double shifted) const {
    if (smoothing != 0) shifted = Walk::reduce(shifted, Plus());
    if (inside && walk.first()) losses[walk.row] = row_loss(walk.row, top, log(total), shifted);
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
  const T* grad_loss;
  const double* counted;
  const T* probabilities;
  const std::int64_t* labels;
  std::int64_t ignored;
  std::int64_t classes;
  T even;  // what smoothing takes from every class
  T picked;
  T* grad;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool inside) const {
    const std::int64_t label = inside ? labels[walk.row] : ignored;
    const bool counts = label != ignored;
    const bool legal = label >= 0 && label < classes;
    const T scale = *counted == 0 ? T(0) : *grad_loss / static_cast<T>(*counted);
    walk.for_each([&](int, std::int64_t at) {
      auto v = Numbers<T, Walk::kPack>::load(probabilities + at);
      for (int i = 0; i < Walk::kPack; ++i) {
        T value = scale * (v.at[i] - even);
        if (walk.column_of(at) + i == label) value -= scale * picked;
        if (!legal) value = static_cast<T>(NAN);
        v.at[i] = counts ? value : T(0);
      }
      v.store(grad + at);
    });
  }
};

}  // namespace

void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options,
                           const Tensor& probabilities, const Tensor& loss) {
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
                          .probabilities = static_cast<T*>(probabilities.raw()),
                          .losses = of_rows};
    launch_rows<T>("cross_entropy", device, n, logits.dim(1), all_aligned(logits, probabilities), op);
    reduce_items("cross_entropy", device, n, Counted{}, CountedLoss{of_rows, label, options.ignore_index}, JoinCounted(),
                 StoreLoss<T>{loss.data<T>()});
  });
}

void cross_entropy_backward(const Tensor& grad_loss, const Tensor& probabilities, const Tensor& labels,
                            const CrossEntropyOptions& options, const Tensor& grad_logits) {
  const std::int64_t n = probabilities.dim(0);
  const std::int64_t classes = probabilities.dim(1);
  const Device device = probabilities.device();
  const Tensor counted = states_on<double>(device, 1);
  double* const count = static_cast<double*>(counted.raw());
  const std::int64_t* const label = labels.data<std::int64_t>();
  reduce_items("cross_entropy_backward", device, n, 0.0, CountOne{label, options.ignore_index}, Plus(), StoreCount{count});
  dispatch_real(probabilities.dtype(), "cross_entropy_backward", [&]<class T>() {
    const RowGradients<T> op{.grad_loss = grad_loss.data<T>(),
                             .counted = count,
                             .probabilities = probabilities.data<T>(),
                             .labels = label,
                             .ignored = options.ignore_index,
                             .classes = classes,
                             .even = static_cast<T>(options.label_smoothing / static_cast<double>(classes)),
                             .picked = static_cast<T>(1.0 - options.label_smoothing),
                             .grad = grad_logits.data<T>()};
    launch_rows<T>("cross_entropy_backward", device, n, classes, all_aligned(probabilities, grad_logits), op);
  });
}

}  // namespace tessera::cuda

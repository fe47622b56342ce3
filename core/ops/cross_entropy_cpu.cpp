#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/exp_row_cpu.h"
#include "core/support/error.h"

namespace tessera::cpu {
namespace {

// Checks the labels and returns the number of counted samples.
std::int64_t check_labels(const std::int64_t* labels, std::int64_t n, std::int64_t classes, std::int64_t ignored) {
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (labels[i] == ignored) continue;
    TESSERA_CHECK(labels[i] >= 0 && labels[i] < classes, ShapeError, "cross_entropy: label out of range: labels[", i, "] is ",
                  labels[i], "; needs 0 to ", classes - 1, " for ", classes, " classes, or ignore_index ", ignored);
    ++counted;
  }
  return counted;
}

template <class T>
rows::ExpSum<T> exp_sum(const T* x, std::int64_t classes, std::vector<T>& scratch) {
  if constexpr (std::is_same_v<T, float>) {
    return rows::kernels().exp_sum(x, classes);
  } else {
    scratch.resize(static_cast<std::size_t>(classes));
    return exp_row(x, classes, scratch.data());
  }
}

// What the gradients of all rows share. The target of a class is `even`, and that of the label's class is `picked` more.
template <class T>
struct Targets {
  T even, picked, scale;
};

template <class T>
void gradient_row(const T* x, std::int64_t classes, std::int64_t label, const rows::ExpSum<T>& sum, const Targets<T>& targets,
                  rows::Stores stores, T* to) {
  const auto& [even, picked, scale] = targets;
  if constexpr (std::is_same_v<T, float>) {
    const rows::CrossEntropyRow row{sum, label, even, picked, scale};
    rows::kernels().cross_entropy_backward(x, classes, row, stores, to);
  } else {
    exp_row(x, classes, to);
    for (std::int64_t k = 0; k < classes; ++k) to[k] = scale * (to[k] / sum.total - even);
    to[label] -= scale * picked;
  }
}

// The loss of a row. `row` has the largest logit and the sum of the exponentials.
template <class T>
double row_loss(const T* x, std::int64_t classes, std::int64_t label, double smoothing, const rows::ExpSum<T>& row) {
  if (label < 0) return 0.0;
  const T top = row.top;  // a named copy: in Clang 14, an OpenMP loop cannot read a structured binding
  const double log_total = std::log(static_cast<double>(row.total));
  const double picked = log_total - static_cast<double>(x[label] - top);
  if (smoothing == 0.0) return picked;  // 0 * inf would turn a class of probability 0 into NaN
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t k = 0; k < classes; ++k) sum += static_cast<double>(x[k] - top);
  return (1.0 - smoothing) * picked + smoothing * (log_total - sum / static_cast<double>(classes));
}

}  // namespace

void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options, const Tensor& row_sums,
                           const Tensor& loss) {
  const std::int64_t n = logits.dim(0);
  const std::int64_t classes = logits.dim(1);
  const std::int64_t* label = labels.data<std::int64_t>();
  const std::int64_t counted = check_labels(label, n, classes, options.ignore_index);
  dispatch_real(logits.dtype(), "cross_entropy", [&]<class T>() {
    const int parts = static_cast<int>(std::min<std::int64_t>(parts_for(n * classes, kGrain / 8), std::max<std::int64_t>(n, 1)));
    std::vector<double> losses(static_cast<std::size_t>(parts), 0.0);
    T* const tops = row_sums.data<T>();
    parallel_parts(n, parts, [&](std::int64_t begin, std::int64_t end, int part) {
      std::vector<T> scratch;
      double total = 0.0;
      for (std::int64_t i = begin; i < end; ++i) {
        const T* const x = logits.data<T>() + i * classes;
        const rows::ExpSum<T> row = exp_sum(x, classes, scratch);
        tops[i] = row.top;
        tops[n + i] = row.total;
        const std::int64_t target = label[i] == options.ignore_index ? -1 : label[i];
        total += row_loss(x, classes, target, options.label_smoothing, row);
      }
      losses[static_cast<std::size_t>(part)] = total;
    });
    double total = 0.0;
    for (const double part : losses) total += part;
    *loss.data<T>() = static_cast<T>(counted == 0 ? 0.0 : total / static_cast<double>(counted));
  });
}

void cross_entropy_backward(const Tensor& grad_loss, const Tensor& logits, const Tensor& row_sums, const Tensor& labels,
                            const CrossEntropyOptions& options, const Tensor& grad_logits) {
  const std::int64_t n = logits.dim(0);
  const std::int64_t classes = logits.dim(1);
  const std::int64_t* label = labels.data<std::int64_t>();
  const std::int64_t counted = n - std::count(label, label + n, options.ignore_index);
  dispatch_real(logits.dtype(), "cross_entropy_backward", [&]<class T>() {
    const Targets<T> targets{.even = static_cast<T>(options.label_smoothing / static_cast<double>(classes)),
                             .picked = static_cast<T>(1.0 - options.label_smoothing),
                             .scale = counted == 0 ? T(0) : *grad_loss.data<T>() / static_cast<T>(counted)};
    const T* const tops = row_sums.data<T>();
    const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(grad_logits.bytes()));
    parallel_for(n, kGrain / classes, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        T* to = grad_logits.data<T>() + i * classes;
        if (label[i] == options.ignore_index) {
          std::fill_n(to, classes, T(0));
          continue;
        }
        gradient_row(logits.data<T>() + i * classes, classes, label[i], {tops[i], tops[n + i]}, targets, stores, to);
      }
    });
  });
}

}  // namespace tessera::cpu

#include <algorithm>
#include <cmath>

#include "core/cpu/parallel.h"
#include "optim/grad_clip.h"

namespace tessera::cpu {

namespace {

constexpr std::int64_t kBlock = 16384;

template <class T>
double squared_sum(const T* values, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

double squared_norm(const Tensor& tensor) {
  const std::int64_t count = tensor.numel();
  std::vector<double> partial(static_cast<std::size_t>((count + kBlock - 1) / kBlock));
  dispatch_real(tensor.dtype(), "clip_grad_norm", [&]<class T>() {
    const T* const values = tensor.data<T>();
    parallel_for(static_cast<std::int64_t>(partial.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        partial[static_cast<std::size_t>(b)] = squared_sum(values + b * kBlock, std::min(kBlock, count - b * kBlock));
      }
    });
  });
  double sum = 0;
  for (const double part : partial) sum += part;
  return sum;
}

}  // namespace

void global_norm(std::span<const Tensor> tensors, const Tensor& norm) {
  double sum = 0;
  for (const Tensor& tensor : tensors) sum += squared_norm(tensor);
  *norm.data<double>() = std::sqrt(sum);
}

void scale_to_norm(const Tensor& tensor, const Tensor& norm, double max_norm) {
  const double ratio = max_norm / (*norm.data<double>() + 1e-6);
  // A NaN ratio must reach the gradients.
  if (ratio >= 1) return;
  dispatch_real(tensor.dtype(), "clip_grad_norm", [&]<class T>() {
    T* const values = tensor.data<T>();
    const T factor = static_cast<T>(ratio);
    parallel_for(tensor.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) values[i] *= factor;
    });
  });
}

}  // namespace tessera::cpu

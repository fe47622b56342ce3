#include <algorithm>

#include "core/compute_type.h"
#include "core/cpu/parallel.h"
#include "core/ops/dropout.h"
#include "core/ops/dropout_math.h"

namespace tessera::cpu {

void dropout_forward(const Tensor& x, double p, RngStream stream, const Tensor& step_state, const Tensor& y, const Tensor& mask) {
  const std::uint32_t threshold = dropout_threshold(p);
  const std::uint64_t step = dropout_step(step_state_data(step_state));
  const std::int64_t count = x.numel();
  dispatch_floating(x.dtype(), "dropout", [&]<class T>() {
    const auto scale = static_cast<Compute<T>>(1.0 / (1.0 - p));
    const T* from = x.data<T>();
    T* to = y.data<T>();
    std::uint8_t* kept = mask.data<std::uint8_t>();
    parallel_for((count + 3) / 4, kGrain / 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        const auto words = random_words(stream, step, static_cast<std::uint64_t>(block));
        const std::int64_t length = std::min<std::int64_t>(4, count - block * 4);
        for (std::int64_t i = 0; i < length; ++i) {
          const bool keep = is_kept(words[static_cast<std::size_t>(i)], threshold);
          kept[block * 4 + i] = keep;
          to[block * 4 + i] = keep ? narrow<T>(scale * widen(from[block * 4 + i])) : narrow<T>(0.0);
        }
      }
    });
  });
}

void dropout_backward(const Tensor& grad_y, double p, const Tensor& mask, const Tensor& grad_x) {
  dispatch_floating(grad_y.dtype(), "dropout_backward", [&]<class T>() {
    const auto scale = static_cast<Compute<T>>(1.0 / (1.0 - p));
    const T* from = grad_y.data<T>();
    T* to = grad_x.data<T>();
    const std::uint8_t* kept = mask.data<std::uint8_t>();
    parallel_for(grad_y.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) to[i] = kept[i] != 0 ? narrow<T>(scale * widen(from[i])) : narrow<T>(0.0);
    });
  });
}

}  // namespace tessera::cpu

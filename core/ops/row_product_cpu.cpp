#include "core/ops/row_product_cpu.h"

#include <algorithm>

#include "core/compute_type.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"

namespace tessera::cpu {
namespace {

template <class T>
void run(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu, int threads) {
  constexpr std::int64_t kAtOnce = 64;
  const Tensor vector = x.to(DType::f32);  // x itself if it is f32
  const std::int64_t in = x.dim(1);
  const float* const offset = bias.defined() ? bias.data<float>() : nullptr;
  parallel_parts(y.dim(1), omp_in_parallel() ? 1 : threads, [&](std::int64_t begin, std::int64_t end, int) {
    const T* of_weight[kAtOnce];
    float dots[kAtOnce];
    for (std::int64_t first = begin; first < end; first += kAtOnce) {
      const std::int64_t count = std::min(kAtOnce, end - first);
      for (std::int64_t i = 0; i < count; ++i) of_weight[i] = weight.data<T>() + (first + i) * in;
      rows::kernels().of<T>().dots(of_weight, count, in, vector.data<float>(), in, 1, dots);
      for (std::int64_t i = 0; i < count; ++i) {
        const float value = dots[i] + (offset != nullptr ? offset[first + i] : 0.0F);
        y.data<T>()[first + i] = narrow<T>(relu && value <= 0 ? 0 : value);
      }
    }
  });
}

}  // namespace

void row_product(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu, int threads) {
  if (y.dtype() == DType::bf16) return run<bfloat16>(x, weight, bias, y, relu, threads);
  run<float>(x, weight, bias, y, relu, threads);
}

}  // namespace tessera::cpu

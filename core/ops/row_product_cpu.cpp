#include "core/ops/row_product_cpu.h"

#include "core/cpu/channel_blocks.h"
#include "core/cpu/parallel.h"

namespace tessera::cpu {
namespace {

constexpr int kWidth = 8;
using Vec = Lanes<float, kWidth>::type;

float sum_of(const Vec& v) {
  float sum = 0;
  for (int i = 0; i < kWidth; ++i) sum += v[i];
  return sum;
}

// sums[r] = x . weight[r]. As many rows at once as hide the latency of a multiply-add.
template <int Rows, class Element>
void dots(const float* x, const Element* weight, std::int64_t in, float* sums) {
  Vec partial[Rows]{};
  std::int64_t k = 0;
  for (; k + kWidth <= in; k += kWidth) {
    const Vec values = load_lanes<float, kWidth>(x + k);
    for (int r = 0; r < Rows; ++r) partial[r] += values * load_lanes<float, kWidth>(weight + r * in + k);
  }
  for (int r = 0; r < Rows; ++r) {
    sums[r] = sum_of(partial[r]);
    for (std::int64_t rest = k; rest < in; ++rest) sums[r] += x[rest] * widen(weight[r * in + rest]);
  }
}

template <class Element>
struct RowProduct {
  const float* x;
  const Element* weight;
  const float* bias;  // null without one
  Element* y;
  std::int64_t in;
  bool relu;

  template <int Rows>
  void outputs_from(std::int64_t first) const {
    float sums[Rows];
    dots<Rows>(x, weight + first * in, in, sums);
    for (int r = 0; r < Rows; ++r) {
      float value = sums[r];
      if (bias != nullptr) value += bias[first + r];
      if (relu) value = value <= 0 ? 0 : value;
      y[first + r] = narrow<Element>(value);
    }
  }

  void outputs(std::int64_t begin, std::int64_t end) const {
    constexpr int kRows = 8;
    std::int64_t o = begin;
    for (; o + kRows <= end; o += kRows) outputs_from<kRows>(o);
    for (; o < end; ++o) outputs_from<1>(o);
  }
};

template <class Element>
void run(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu, int threads) {
  const Tensor row = x.to(DType::f32);  // itself, where it is f32
  const RowProduct<Element> product{row.data<float>(),
                                    weight.data<Element>(),
                                    bias.defined() ? bias.data<float>() : nullptr,
                                    y.data<Element>(),
                                    x.dim(1),
                                    relu};
  parallel_parts(y.dim(1), omp_in_parallel() ? 1 : threads,
                 [&](std::int64_t begin, std::int64_t end, int) { product.outputs(begin, end); });
}

}  // namespace

void row_product(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu, int threads) {
  if (y.dtype() == DType::bf16) return run<bfloat16>(x, weight, bias, y, relu, threads);
  run<float>(x, weight, bias, y, relu, threads);
}

}  // namespace tessera::cpu

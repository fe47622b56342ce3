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
template <int Rows>
void dots(const float* x, const float* weight, std::int64_t in, float* sums) {
  Vec partial[Rows]{};
  std::int64_t k = 0;
  for (; k + kWidth <= in; k += kWidth) {
    const Vec values = load_lanes<float, kWidth>(x + k);
    for (int r = 0; r < Rows; ++r) partial[r] += values * load_lanes<float, kWidth>(weight + r * in + k);
  }
  for (int r = 0; r < Rows; ++r) {
    sums[r] = sum_of(partial[r]);
    for (std::int64_t rest = k; rest < in; ++rest) sums[r] += x[rest] * weight[r * in + rest];
  }
}

}  // namespace

void row_product(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu, int threads) {
  const std::int64_t in = x.dim(1);
  const float* const row = x.data<float>();
  const float* const factors = weight.data<float>();
  const float* const offsets = bias.defined() ? bias.data<float>() : nullptr;
  float* const to = y.data<float>();
  parallel_parts(y.dim(1), omp_in_parallel() ? 1 : threads, [&](std::int64_t begin, std::int64_t end, int) {
    constexpr int kRows = 8;
    std::int64_t o = begin;
    for (; o + kRows <= end; o += kRows) dots<kRows>(row, factors + o * in, in, to + o);
    for (; o < end; ++o) dots<1>(row, factors + o * in, in, to + o);
    for (o = begin; o < end; ++o) {
      if (offsets != nullptr) to[o] += offsets[o];
      if (relu) to[o] = to[o] <= 0 ? 0 : to[o];
    }
  });
}

}  // namespace tessera::cpu

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/cpu/channel_blocks.h"
#include "core/cpu/parallel_tensors.h"
#include "core/support/rounding.h"
#include "optim/grad_clip.h"

namespace tessera::cpu {

namespace {

constexpr std::int64_t kBlock = 16384;

constexpr int kLanes = 4;
using Doubles = Lanes<double, kLanes>::type;

// As many sums at once as hide the latency of an addition.
template <class T>
double squared_sum(const T* values, std::int64_t count) {
  constexpr int kSums = 8;
  Doubles sums[kSums]{};
  std::int64_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
#pragma GCC unroll 8
    for (int s = 0; s < kSums; ++s) {
      const Doubles v = __builtin_convertvector((load_lanes<T, kLanes>(values + i + s * kLanes)), Doubles);
      sums[s] += v * v;
    }
  }
  for (int s = 1; s < kSums; ++s) sums[0] += sums[s];
  double sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[0][lane];
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

std::int64_t blocks_before(std::int64_t element) { return ceil_div(element, kBlock); }

const Tensor& itself(const Tensor& tensor) { return tensor; }

}  // namespace

// A thread sums the blocks that begin in its share of the elements.
void global_norm(std::span<const Tensor> tensors, const Tensor& norm) {
  std::vector<std::vector<double>> partial;
  for (const Tensor& tensor : tensors) partial.emplace_back(static_cast<std::size_t>(blocks_before(tensor.numel())));
  parallel_tensors(tensors, kBlock, itself, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    const Tensor& tensor = tensors[i];
    dispatch_real(tensor.dtype(), "clip_grad_norm", [&]<class T>() {
      for (std::int64_t b = blocks_before(begin); b < blocks_before(end); ++b) {
        partial[i][static_cast<std::size_t>(b)] =
            squared_sum(tensor.data<T>() + b * kBlock, std::min(kBlock, tensor.numel() - b * kBlock));
      }
    });
  });
  double sum = 0;
  for (const std::vector<double>& blocks : partial) sum += std::accumulate(blocks.begin(), blocks.end(), 0.0);
  *norm.data<double>() = std::sqrt(sum);
}

void scale_to_norm(std::span<const Tensor> tensors, const Tensor& norm, double max_norm) {
  const double ratio = max_norm / (*norm.data<double>() + 1e-6);
  // A NaN ratio must reach the gradients.
  if (ratio >= 1) return;
  parallel_tensors(tensors, kGrain, itself, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    dispatch_real(tensors[i].dtype(), "clip_grad_norm", [&]<class T>() {
      T* const values = tensors[i].data<T>();
      const T factor = static_cast<T>(ratio);
#pragma omp simd
      for (std::int64_t at = begin; at < end; ++at) values[at] *= factor;
    });
  });
}

}  // namespace tessera::cpu

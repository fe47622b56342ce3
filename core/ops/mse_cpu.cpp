#include <array>
#include <vector>

#include "core/cpu/map.h"
#include "core/cpu/parallel.h"
#include "core/ops/mse.h"

namespace tessera::cpu {
namespace {

constexpr std::int64_t kLanes = 16;  // independent sums, to hide the latency of the additions

template <class T>
double squared_distance(const T* x, const T* target, std::int64_t count) {
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
#pragma omp simd
    for (std::int64_t j = 0; j < kLanes; ++j) {
      const double d = static_cast<double>(x[i + j]) - static_cast<double>(target[i + j]);
      lanes[static_cast<std::size_t>(j)] += d * d;
    }
  }
  double total = 0.0;
  for (; i < count; ++i) {
    const double d = static_cast<double>(x[i]) - static_cast<double>(target[i]);
    total += d * d;
  }
  for (const double lane : lanes) total += lane;
  return total;
}

}  // namespace

void mse_forward(const Tensor& x, const Tensor& target, const Tensor& y) {
  const Tensor a = x.contiguous();
  const Tensor b = target.contiguous();
  const int parts = parts_for(a.numel());
  std::vector<double> sums(static_cast<std::size_t>(parts), 0.0);
  dispatch_real(a.dtype(), "mse", [&]<class T>() {
    parallel_parts(a.numel(), parts, [&](std::int64_t begin, std::int64_t end, int part) {
      sums[static_cast<std::size_t>(part)] = squared_distance(a.data<T>() + begin, b.data<T>() + begin, end - begin);
    });
    double total = 0.0;
    for (const double sum : sums) total += sum;
    *y.data<T>() = static_cast<T>(total / static_cast<double>(a.numel()));
  });
}

void mse_backward(const Tensor& x, const Tensor& target, const Tensor& grad_y, double scale, const Tensor& grad) {
  dispatch_real(x.dtype(), "mse_backward", [&]<class T>() {
    const T factor = static_cast<T>(scale * static_cast<double>(*grad_y.data<T>()));
    map("mse_backward", [factor](auto a, auto b) { return static_cast<decltype(a)>(factor) * (a - b); }, grad, x, target);
  });
}

}  // namespace tessera::cpu

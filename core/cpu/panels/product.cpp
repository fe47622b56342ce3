#include "core/cpu/panels/product.h"

#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"

namespace tessera::cpu::panels {
namespace {

constexpr std::int64_t kRowsOfTask = 6;  // of sums in registers
constexpr std::int64_t kOutsOfTask = 48;  // whole vectors, and a multiple of the rows of sums in registers
static_assert(kRows % kOutsOfTask == 0);

using Layout = decltype(Kernels::turn);

Tensor laid_out(Layout layout, const Tensor& matrix, Panels& panels) {
  const Tensor to = Tensor::empty({panels.size()});
  parallel_parts(panels.count(), parts_for(panels.size()), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t panel = begin; panel < end; ++panel) layout(matrix.data<float>(), panels, panel, to.data<float>());
  });
  panels.at = to.data<float>();
  return to;
}

}  // namespace

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

void product(const Kernels& kernels, const Tensor& a, const Tensor& b, bool transposed, const Tensor& bias, const Tensor& y) {
  const std::int64_t m = y.dim(0), n = y.dim(1), k = a.dim(1);
  const double flops = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
  const float* const from = bias.defined() ? bias.data<float>() : nullptr;
  if (transposed && m < n) {
    TurnedProduct product{{nullptr, m, k}, b.data<float>(), n, from, y.data<float>()};
    const Tensor panels = laid_out(kernels.turn, a, product.x);
    const std::int64_t tasks = ceil_div(n, kOutsOfTask);
    const int threads = threads_for(flops, tasks);
    const Tensor sums = Tensor::empty({threads, kRows * kTurned});
    parallel_parts(tasks, threads, [&](std::int64_t begin, std::int64_t end, int part) {
      kernels.multiply_turned(product, begin * kOutsOfTask, std::min(end * kOutsOfTask, n),
                              sums.data<float>() + part * kRows * kTurned);
    });
    return;
  }
  Product product{a.data<float>(), {nullptr, n, k}, from, y.data<float>()};
  const Tensor panels = laid_out(transposed ? kernels.turn : kernels.copy, b, product.w);
  const std::int64_t tasks = ceil_div(m, kRowsOfTask);
  parallel_parts(tasks, threads_for(flops, tasks), [&](std::int64_t begin, std::int64_t end, int) {
    kernels.multiply(product, begin * kRowsOfTask, std::min(end * kRowsOfTask, m));
  });
}

}  // namespace tessera::cpu::panels

#include "core/cpu/panels/product.h"

#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/support/rounding.h"

namespace tessera::cpu::panels {
namespace {

thread_local std::size_t product_runs = 0;

using Layout = decltype(Kernels::turn);

Tensor laid_out(Layout layout, const Tensor& matrix, Panels& panels) {
  const Tensor to = Tensor::empty({panels.size()});
  parallel_parts(panels.count(), parts_for(panels.size()), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t panel = begin; panel < end; ++panel) layout(matrix.data<float>(), panels, panel, to.data<float>());
  });
  panels.at = to.data<float>();
  return to;
}

bool lays_out_a(const Factors& f) { return f.b_transposed && f.a.dim(0) < f.b.dim(0); }

}  // namespace

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

std::size_t runs() { return product_runs; }

bool lays_out_smaller(const Factors& f) { return f.b_transposed || f.a.dim(0) >= f.b.dim(1); }

void product(const Kernels& kernels, const Factors& factors, const Tensor& bias, const Tensor& y) {
  ++product_runs;
  const auto& [a, b, b_transposed] = factors;
  const std::int64_t m = y.dim(0), n = y.dim(1), k = a.dim(1);
  const double flops = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
  const float* const from = bias.defined() ? bias.data<float>() : nullptr;
  if (lays_out_a(factors)) {
    TurnedProduct product{{nullptr, m, k}, b.data<float>(), n, from, y.data<float>()};
    const Tensor panels = laid_out(kernels.turn, a, product.x);
    const std::int64_t tasks = ceil_div(n, kTaskOuts);
    const int threads = threads_for(flops, tasks);
    const Tensor sums = Tensor::empty({threads, kRows * kTurned});
    parallel_parts(tasks, threads, [&](std::int64_t begin, std::int64_t end, int part) {
      kernels.multiply_turned(product, begin * kTaskOuts, std::min(end * kTaskOuts, n),
                              sums.data<float>() + part * kRows * kTurned);
    });
    return;
  }
  Product product{a.data<float>(), {nullptr, n, k}, from, y.data<float>()};
  const Tensor panels = laid_out(b_transposed ? kernels.turn : kernels.copy, b, product.w);
  const std::int64_t tasks = ceil_div(m, kTaskRows);
  parallel_parts(tasks, threads_for(flops, tasks), [&](std::int64_t begin, std::int64_t end, int) {
    kernels.multiply(product, begin * kTaskRows, std::min(end * kTaskRows, m));
  });
}

}  // namespace tessera::cpu::panels

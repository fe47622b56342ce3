#include "core/cpu/sparse/product.h"

#include <algorithm>
#include <vector>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/cpu/sparse/packer.h"
#include "core/cpu/sparse/strips.h"
#include "core/tensor.h"

namespace tessera::cpu::sparse {
namespace {

constexpr std::int64_t kLine = 16;  // floats of a cache line

void multiply_part(const Kernels& kernels, const Plan& plan, const Part& part, const float* weights, const float* x,
                   std::int64_t first, std::int64_t count, const float* bias, bool relu, float* panel, float* y) {
  for (std::int64_t r = part.first; r < part.last; ++r) {
    std::fill_n(panel + r * kPanel, kPanel, bias != nullptr ? bias[r] : 0.0F);
  }
  std::vector<float*> rows(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    rows[i] = y + (first + i) * plan.rows + part.first;
    for (std::int64_t c = 0; c < part.last - part.first; c += kLine) __builtin_prefetch(rows[i] + c, 1, 2);
  }
  kernels.product(plan.lists(part), weights, x, count, panel);
  kernels.unpack(panel + part.first * kPanel, kPanel, count, part.last - part.first, relu, rows.data());
}

}  // namespace

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

void multiply(const Kernels& kernels, const Plan& plan, const float* weights, const Window& window, const float* x,
              const float* bias, bool relu, float* y) {
  if (const std::optional<Strips> strips = best_strips(window, plan)) {
    return multiply_strips(kernels, plan, weights, window, *strips, x, bias, relu, y);
  }
  const std::int64_t panels = (window.positions() + kPanel - 1) / kPanel;
  const double flops = 2.0 * static_cast<double>(plan.from.size()) * static_cast<double>(window.positions());
  const int threads = omp_in_parallel() || flops < kLeastFlopsForThreads ? 1 : omp_get_max_threads();
  // Threads share a panel where there are few, and pack it once each.
  const std::int64_t shares = panels >= 4 * threads || threads == 1 ? 1 : static_cast<std::int64_t>(plan.parts.size());
  const std::int64_t tasks = panels * shares;
  const int parts = static_cast<int>(std::min<std::int64_t>(threads, tasks));
  const std::int64_t each = (plan.columns + plan.rows) * kPanel;
  const Tensor panel_memory = Tensor::empty({parts, each});
  parallel_parts(tasks, parts, [&](std::int64_t begin, std::int64_t end, int thread) {
    Packer packer(kernels, window, x, kPanel);
    float* const x_panel = panel_memory.data<float>() + thread * each;
    float* const y_panel = x_panel + plan.columns * kPanel;
    std::int64_t packed = -1;
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t first = task / shares * kPanel;
      const std::int64_t count = std::min(kPanel, window.positions() - first);
      if (packed != first) packer.pack(packed = first, count, x_panel);
      for (std::size_t i = 0; i < plan.parts.size(); ++i) {
        if (shares > 1 && static_cast<std::int64_t>(i) != task % shares) continue;
        multiply_part(kernels, plan, plan.parts[i], weights, x_panel, first, count, bias, relu, y_panel, y);
      }
    }
  });
}

}  // namespace tessera::cpu::sparse

#include "core/cpu/sparse/gradient.h"

#include <algorithm>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/cpu/sparse/packer.h"
#include "core/tensor.h"

namespace tessera::cpu::sparse {
namespace {

constexpr std::int64_t kPanelsAtOnce = 8;  // packed by all threads before they sum

}  // namespace

void gradient(const Kernels& kernels, const Plan& plan, const Window& window, const float* x, const float* grad_y, float* grad) {
  std::fill_n(grad, plan.from.size(), 0.0F);
  const std::int64_t panels = (window.positions() + kSumPanel - 1) / kSumPanel;
  const std::int64_t each = (plan.columns + plan.rows) * kSumPanel;
  const Tensor panel_memory = Tensor::empty({std::min(panels, kPanelsAtOnce), each});
  const auto memory = [&](std::int64_t panel) { return panel_memory.data<float>() + panel % kPanelsAtOnce * each; };
  const auto count_of = [&](std::int64_t panel) { return std::min(kSumPanel, window.positions() - panel * kSumPanel); };
  for (std::int64_t begin = 0; begin < panels; begin += kPanelsAtOnce) {
    const std::int64_t end = std::min(panels, begin + kPanelsAtOnce);
    parallel_for(end - begin, 1, [&](std::int64_t from, std::int64_t to) {
      Packer packer(kernels, window, x, kSumPanel);
      std::vector<const float*> rows(kSumPanel);
      for (std::int64_t panel = begin + from; panel < begin + to; ++panel) {
        const std::int64_t first = panel * kSumPanel;
        const std::int64_t count = count_of(panel);
        packer.pack(first, count, memory(panel));
        for (std::int64_t i = 0; i < count; ++i) rows[i] = grad_y + (first + i) * plan.rows;
        kernels.pack(rows.data(), count, plan.rows, memory(panel) + plan.columns * kSumPanel, kSumPanel);
      }
    });
    parallel_for(static_cast<std::int64_t>(plan.parts.size()), 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t panel = begin; panel < end; ++panel) {
        for (std::int64_t i = from; i < to; ++i) {
          kernels.sums(plan.lists(plan.parts[i]), memory(panel) + plan.columns * kSumPanel, memory(panel), count_of(panel), grad);
        }
      }
    });
  }
}

}  // namespace tessera::cpu::sparse

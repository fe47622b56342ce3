#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/machine_memory.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/support/rounding.h"

namespace tessera::cpu::rows {

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

void column_sums(const Kernels& kernels, std::int64_t rows, std::int64_t columns, const float* x, float* totals) {
  constexpr std::int64_t kTogether = 64;  // columns of a part, which one thread sums
  constexpr std::int64_t kMost = 1024;  // columns whose sums stay in the first-level cache
  const std::int64_t parts = ceil_div(columns, kTogether);
  parallel_for(parts, kGrain / (kTogether * std::max<std::int64_t>(rows, 1)) + 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t last = std::min(end * kTogether, columns);
    for (std::int64_t first = begin * kTogether; first < last; first += kMost) {
      const std::int64_t width = std::min(kMost, last - first);
      double sums[kMost]{};
      kernels.add_rows(x + first, columns, rows, width, sums);
      std::transform(sums, sums + width, totals + first, [](double sum) { return static_cast<float>(sum); });
    }
  });
}

Stores stores_for(std::int64_t bytes) { return exceeds_caches(bytes) ? Stores::past_caches : Stores::cached; }

}  // namespace tessera::cpu::rows

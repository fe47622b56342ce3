#include "core/cpu/sparse/product.h"

#include <algorithm>
#include <vector>

#include "core/cpu/isa.h"
#include "core/cpu/machine_memory.h"
#include "core/cpu/parallel.h"
#include "core/cpu/sparse/packer.h"
#include "core/cpu/sparse/strips.h"
#include "core/tensor.h"

namespace tessera::cpu::sparse {
namespace {

constexpr std::int64_t kLine = 16;  // floats of a cache line
constexpr std::int64_t kRowsAtOnce = 128;  // rows of y that stay in the caches while their parts are multiplied: 32 KiB
// If x and y exceed the caches, the data needed next is prefetched in turns while a panel is multiplied: at most kTurns turns for
// all blocks of a part, of at least kPiecesOfATurn pieces each. Otherwise prefetching costs 5 % of a product with few elements.
constexpr std::int64_t kTurns = 16, kPiecesOfATurn = 16;

// Prefetches `rows` rows of `floats` floats each into the second-level cache, a share per turn.
class Fetch {
 public:
  Fetch(const float* from, std::int64_t rows, std::int64_t floats, std::int64_t pitch, std::int64_t turns)
      : row_(from),
        rows_(rows),
        floats_(floats),
        pitch_(pitch),
        share_((rows * ((floats + kLine - 1) / kLine) + turns - 1) / turns) {}

  void turn() {
    for (std::int64_t i = 0; i < share_ && rows_ > 0; ++i) {
      __builtin_prefetch(row_ + next_, 0, 2);
      next_ += kLine;
      if (next_ >= floats_) row_ += pitch_, next_ = 0, --rows_;
    }
  }

 private:
  const float* row_;
  std::int64_t rows_, floats_, pitch_, share_, next_ = 0;
};

// The work of a thread: one panel of x, multiplied by some parts of A.
struct PanelWork {
  const float* x;
  std::int64_t first, count;  // positions
  std::size_t part, parts;
};

// The pieces of `lists` that are multiplied in turn `turn` of `turns`.
Lists slice(const Lists& lists, std::int64_t turn, std::int64_t turns) {
  const std::int64_t begin = lists.count * turn / turns, end = lists.count * (turn + 1) / turns;
  return {lists.pieces + begin, end - begin, lists.row_list, lists.column_list};
}

class Multiplier {
 public:
  // `fetches`: prefetches the parts of y before they are written.
  Multiplier(const Kernels& kernels, const Plan& plan, const float* weights, const float* bias, bool relu, float* y, bool fetches)
      : kernels_(kernels), plan_(plan), weights_(weights), bias_(bias), relu_(relu), y_(y), fetches_(fetches) {
    if (!fetches) return;
    const std::int64_t lists = plan.blocks * static_cast<std::int64_t>(plan.parts.size());
    const std::int64_t pieces = static_cast<std::int64_t>(plan.pieces.size()) / std::max<std::int64_t>(1, lists);
    turns_ = std::max<std::int64_t>(1, std::min(kTurns / plan.blocks, pieces / kPiecesOfATurn));
  }

  // The number of turns that multiply() takes for so many parts.
  std::int64_t turns(std::size_t parts) const { return turns_ * plan_.blocks * static_cast<std::int64_t>(parts); }

  std::int64_t panel_rows() const {
    std::int64_t most = 0;
    for (std::size_t part = 0; part < plan_.parts.size(); ++part) {
      most = std::max(most, plan_.parts[end_of(part, plan_.parts.size()) - 1].last - plan_.parts[part].first);
    }
    return most;
  }

  // `next`: prefetches the data that is read after this panel. `panel`: scratch of panel_rows() rows.
  void multiply(const PanelWork& work, Fetch next, float* panel) const {
    const std::size_t last = work.part + work.parts;
    for (std::size_t begin = work.part, end = 0; begin < last; begin = end) {
      multiply_parts(work, begin, end = end_of(begin, last), next, panel);
    }
  }

 private:
  // The end of the parts that are multiplied together, from `begin` on.
  std::size_t end_of(std::size_t begin, std::size_t last) const {
    std::size_t end = begin + 1;
    while (end < last && plan_.parts[end].last - plan_.parts[begin].first <= kRowsAtOnce) ++end;
    return end;
  }

  void multiply_parts(const PanelWork& work, std::size_t begin, std::size_t end, Fetch& next, float* panel) const {
    const std::int64_t first = plan_.parts[begin].first, rows = plan_.parts[end - 1].last - first;
    for (std::int64_t r = 0; r < rows; ++r) std::fill_n(panel + r * kPanel, kPanel, bias_ != nullptr ? bias_[first + r] : 0.0F);
    float* const to = y_ + work.first * plan_.rows + first;
    Fetch results(to, fetches_ ? work.count : 0, rows, plan_.rows, turns(end - begin));
    for (std::int64_t block = 0; block < plan_.blocks; ++block) {
      for (std::size_t part = begin; part < end; ++part) {
        for (std::int64_t turn = 0; turn < turns_; ++turn) {
          next.turn();
          results.turn();
          Lists lists = slice(plan_.lists(part, block), turn, turns_);
          lists.first_row = first;
          kernels_.product(lists, weights_, work.x, work.count, panel);
        }
      }
    }
    float* to_rows[kPanel];
    for (std::int64_t i = 0; i < work.count; ++i) to_rows[i] = to + i * plan_.rows;
    kernels_.unpack(panel, kPanel, work.count, rows, relu_, to_rows);
  }

  const Kernels& kernels_;
  const Plan& plan_;
  const float* weights_;
  const float* bias_;
  bool relu_;
  float* y_;
  bool fetches_;
  std::int64_t turns_ = 1;  // per part and block
};

}  // namespace

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

void multiply(const Kernels& kernels, const Plan& plan, const float* weights, const Window& window, const float* x,
              const float* bias, bool relu, float* y) {
  if (const std::optional<Strips> strips = best_strips(window, plan)) {
    return multiply_strips(kernels, plan, weights, window, *strips, x, bias, relu, y);
  }
  const std::int64_t panels = (window.positions() + kPanel - 1) / kPanel;
  const double flops = 2.0 * static_cast<double>(plan.from.size()) * static_cast<double>(window.positions());
  const int threads = threads_for(flops);
  // If panels are few, threads share a panel, and each thread packs it.
  const std::int64_t shares = panels >= 4 * threads || threads == 1 ? 1 : static_cast<std::int64_t>(plan.parts.size());
  const std::int64_t tasks = panels * shares;
  const int parts = static_cast<int>(std::min<std::int64_t>(threads, tasks));
  const std::int64_t pixels = window.images * window.y.sources * window.x.sources;
  const std::int64_t floats = pixels * window.channels + window.positions() * plan.rows;
  const bool fetches = exceeds_caches(floats * static_cast<std::int64_t>(sizeof(float)));
  const Multiplier multiplier(kernels, plan, weights, bias, relu, y, fetches);
  const std::int64_t each = (plan.columns + multiplier.panel_rows()) * kPanel;
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
      const PanelWork work = shares == 1 ? PanelWork{x_panel, first, count, 0, plan.parts.size()}
                                         : PanelWork{x_panel, first, count, static_cast<std::size_t>(task % shares), 1};
      // A thread that goes on to another panel prefetches its pixels meanwhile, if they are contiguous.
      const bool goes_on = fetches && window.is_pointwise() && task + 1 < end && (task + 1) % shares == 0;
      const std::int64_t rows = goes_on ? std::min(kPanel, window.positions() - first - count) : 0;
      const Fetch next(x + (first + count) * window.channels, rows, window.channels, window.channels,
                       multiplier.turns(work.parts));
      multiplier.multiply(work, next, y_panel);
    }
  });
}

}  // namespace tessera::cpu::sparse

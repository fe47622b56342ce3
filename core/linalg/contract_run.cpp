#include "core/linalg/contract_run.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <tuple>

#include "core/cpu/parallel.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

constexpr std::int64_t kAbsent = -1;
constexpr std::size_t kTensors = 3;

// Several indices flattened into one: their labels (outermost first), size and stride in each tensor.
struct Mode {
  std::string labels;
  std::int64_t size = 1;
  std::array<std::int64_t, kTensors> strides = {kAbsent, kAbsent, kAbsent};

  bool in(std::size_t tensor) const { return strides[tensor] != kAbsent; }
  bool contracted() const { return !in(kResult); }
  bool free_in(std::size_t operand) const { return in(operand) && !in(kLeft + kRight - operand); }
};

using Modes = std::vector<Mode>;
using Layouts = std::array<IndexLayout, kTensors>;

// True if `inner` directly continues `outer` in every tensor that has one of them.
bool flattens(const Mode& outer, const Mode& inner) {
  for (std::size_t t = 0; t < kTensors; ++t) {
    if (outer.in(t) != inner.in(t)) return false;
    if (outer.in(t) && outer.strides[t] != inner.size * inner.strides[t]) return false;
  }
  return true;
}

bool flatten_one(Modes& modes) {
  for (std::size_t i = 0; i < modes.size(); ++i) {
    for (std::size_t j = 0; j < modes.size(); ++j) {
      if (i == j || !flattens(modes[i], modes[j])) continue;
      modes[i] = {modes[i].labels + modes[j].labels, modes[i].size * modes[j].size, modes[j].strides};
      modes.erase(modes.begin() + static_cast<std::ptrdiff_t>(j));
      return true;
    }
  }
  return false;
}

Modes flattened_modes(const Layouts& layouts, const IndexSizes& sizes) {
  Modes modes;
  for (const auto& [label, size] : sizes) {
    if (size == 1) continue;
    Mode mode{std::string(1, label), size};
    for (std::size_t t = 0; t < kTensors; ++t) {
      const std::size_t axis = layouts[t].labels.find(label);
      if (axis != std::string::npos) mode.strides[t] = layouts[t].strides[axis];
    }
    modes.push_back(mode);
  }
  while (flatten_one(modes)) {
  }
  return modes;
}

// The modes of a matrix product. A null role is a dimension of size 1; its stride may count as 1 in every tensor.
struct Roles {
  const Mode* rows = nullptr;  // free in the left operand
  const Mode* columns = nullptr;  // free in the right one
  const Mode* inner = nullptr;  // contracted
};

std::int64_t size_of(const Mode* mode) { return mode ? mode->size : 1; }
std::int64_t stride_of(const Mode* mode, std::size_t tensor) { return mode && mode->in(tensor) ? mode->strides[tensor] : 1; }

bool has_unit_strides(const Roles& r) {
  const auto unit = [](const Mode* x, const Mode* y, std::size_t t) { return stride_of(x, t) == 1 || stride_of(y, t) == 1; };
  return unit(r.rows, r.inner, kLeft) && unit(r.inner, r.columns, kRight) && unit(r.rows, r.columns, kResult);
}

MatrixStrides matrix(const Mode* batch, const Mode* rows, const Mode* columns, std::size_t tensor) {
  return {batch && batch->in(tensor) ? batch->strides[tensor] : 0, stride_of(rows, tensor), stride_of(columns, tensor)};
}

// The matrices of these roles. The longest of the other modes is the batch, the rest are loops.
ContractRun run_of(const Modes& modes, const Roles& roles) {
  std::vector<const Mode*> rest;
  for (const Mode& mode : modes) {
    if (&mode != roles.rows && &mode != roles.columns && &mode != roles.inner) rest.push_back(&mode);
  }
  // Among modes of equal size the one outermost in the result is the batch: each call then writes all over the result once.
  std::ranges::sort(rest, [](const Mode* x, const Mode* y) {
    return std::pair(x->size, x->strides[kResult]) > std::pair(y->size, y->strides[kResult]);
  });
  const Mode* const batch = rest.empty() ? nullptr : rest.front();
  ContractRun run;
  run.plan = {.m = size_of(roles.rows), .n = size_of(roles.columns), .k = size_of(roles.inner), .batch = size_of(batch)};
  for (std::size_t i = 1; i < rest.size(); ++i) {
    ContractRun::Loop loop{rest[i]->size, {}};
    for (std::size_t t = 0; t < kTensors; ++t) loop.strides[t] = rest[i]->in(t) ? rest[i]->strides[t] : 0;
    run.loops.push_back(loop);
    run.plan.calls *= loop.size;
  }
  run.plan.loops = static_cast<int>(run.loops.size());
  run.swapped = stride_of(roles.columns, kResult) != 1;
  run.product = {.batch = run.plan.batch, .m = run.plan.m, .n = run.plan.n, .k = run.plan.k};
  if (run.swapped) {
    std::swap(run.product.m, run.product.n);
    run.product.a = matrix(batch, roles.columns, roles.inner, kRight);
    run.product.b = matrix(batch, roles.inner, roles.rows, kLeft);
    run.product.y = matrix(batch, roles.columns, roles.rows, kResult);
  } else {
    run.product.a = matrix(batch, roles.rows, roles.inner, kLeft);
    run.product.b = matrix(batch, roles.inner, roles.columns, kRight);
    run.product.y = matrix(batch, roles.rows, roles.columns, kResult);
  }
  const auto name = [](const Mode* mode) { return mode ? mode->labels : std::string("1"); };
  run.plan.text =
      str(run.plan.calls, run.plan.calls == 1 ? " call" : " calls", batch ? ", batch " + name(batch) : std::string(), ", of [",
          name(roles.rows), ", ", name(roles.inner), "] x [", name(roles.inner), ", ", name(roles.columns), ']');
  return run;
}

// Estimated time of a plan on top of its multiply-adds, in nanoseconds. All plans of a contraction have the same multiply-adds,
// so only the differences of these estimates decide.
constexpr double kSmallProduct = 250;  // one small product, computed by one thread
constexpr double kThreadedCall = 2500;
constexpr double kFarElement = 1;  // for an operand whose rows or columns are whole pages apart: a cache keeps only a few of them
constexpr double kColumnElement = 0.1;  // for a column-major right matrix
constexpr int kMostChosenCopies = 2;  // a third one costs more than it saves
constexpr double kCopy = 150, kCopiedElement = 0.35;
constexpr std::int64_t kPage = 1024;  // elements
constexpr std::int64_t kCacheWays = 8;

// Extra cost of reading an operand of rows x columns elements, over all products.
double reading_cost(const MatrixStrides& strides, std::int64_t rows, std::int64_t columns, double products) {
  const bool by_rows = strides.column == 1;
  const std::int64_t apart = by_rows ? strides.row : strides.column;
  const bool far = apart % kPage == 0 && apart > 0 && (by_rows ? rows : columns) > kCacheWays;
  return far ? kFarElement * products * static_cast<double>(rows) * static_cast<double>(columns) : 0;
}

double cost_of(const ContractRun& run) {
  const StridedProduct& p = run.product;
  const double calls = static_cast<double>(run.plan.calls), products = calls * static_cast<double>(p.batch);
  double cost = p.flops() < cpu::kLeastFlopsForThreads ? products * kSmallProduct : calls * kThreadedCall;
  cost += reading_cost(p.a, p.m, p.k, products) + reading_cost(p.b, p.k, p.n, products);
  if (p.b.column != 1) cost += kColumnElement * products * static_cast<double>(p.k) * static_cast<double>(p.n);
  return cost;
}

double multiply_adds(const ContractPlan& plan) {
  return static_cast<double>(plan.m) * static_cast<double>(plan.n) * static_cast<double>(plan.k);
}

// Prefers the fewest calls, then the largest matrices, then the lowest estimated cost.
bool better(const ContractRun& x, const ContractRun& y) {
  return std::tuple(x.plan.calls, -multiply_adds(x.plan), cost_of(x)) <
         std::tuple(y.plan.calls, -multiply_adds(y.plan), cost_of(y));
}

std::optional<ContractRun> best_run(const Layouts& layouts, const IndexSizes& sizes) {
  const Modes modes = flattened_modes(layouts, sizes);
  std::vector<const Mode*> rows, columns, inner;
  for (const Mode& mode : modes) {
    if (mode.contracted()) {
      inner.push_back(&mode);
    } else if (mode.free_in(kLeft)) {
      rows.push_back(&mode);
    } else if (mode.free_in(kRight)) {
      columns.push_back(&mode);
    }
  }
  if (inner.size() > 1) return std::nullopt;  // a call overwrites its result, so it cannot sum over a second contracted index
  for (auto* role : {&rows, &columns, &inner}) {
    if (role->empty()) role->push_back(nullptr);
  }
  std::optional<ContractRun> best;
  for (const Mode* const row : rows) {
    for (const Mode* const column : columns) {
      const Roles roles{row, column, inner.front()};
      if (!has_unit_strides(roles)) continue;
      ContractRun run = run_of(modes, roles);
      if (!best || better(run, *best)) best = std::move(run);
    }
  }
  return best;
}

// The labels by descending stride.
std::string memory_order(const IndexLayout& layout) {
  std::vector<std::size_t> axes(layout.labels.size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  std::ranges::stable_sort(axes, [&](std::size_t x, std::size_t y) { return layout.strides[x] > layout.strides[y]; });
  std::string order;
  for (const std::size_t axis : axes) order += layout.labels[axis];
  return order;
}

using Copied = std::array<bool, kTensors>;

// The lengths of the common suffix and the common prefix of two orders. A copy moves the suffix as one contiguous piece. The
// prefix stays in place, so the copy transposes within smaller regions, which caches hold.
std::pair<std::ptrdiff_t, std::ptrdiff_t> in_place(const std::string& x, const std::string& y) {
  return {std::mismatch(x.rbegin(), x.rend(), y.rbegin()).first - x.rbegin(),
          std::mismatch(x.begin(), x.end(), y.begin()).first - x.begin()};
}

// The orders worth trying for a copy of tensor t, the least movement first. The three kinds of indices are blocks in any order.
// Each block keeps the order of a tensor that is not copied, so that it flattens as far as possible.
std::vector<std::string> copies_of(std::size_t t, const Layouts& layouts, const Copied& copied) {
  const auto kept = [&](std::initializer_list<std::size_t> tensors) {
    for (const std::size_t tensor : tensors) {
      if (!copied[tensor]) return tensor;
    }
    return *tensors.begin();
  };
  std::array<std::string, kTensors> blocks;  // batch; the two kinds that this tensor shares with one other
  const std::size_t others[] = {(t + 1) % kTensors, (t + 2) % kTensors};
  const auto has = [&](std::size_t tensor, char label) { return layouts[tensor].labels.find(label) != std::string::npos; };
  for (const char label : memory_order(layouts[kept({kResult, kLeft, kRight})])) {
    if (has(t, label) && has(others[0], label) && has(others[1], label)) blocks[0] += label;
  }
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    for (const char label : memory_order(layouts[kept({std::min(t, others[i]), std::max(t, others[i])})])) {
      if (has(t, label) && has(others[i], label) && !has(others[1 - i], label)) blocks[1 + i] += label;
    }
  }
  std::vector<std::string> orders;
  std::array<int, kTensors> order{0, 1, 2};
  do {
    std::string labels;
    for (const int block : order) labels += blocks[static_cast<std::size_t>(block)];
    if (std::ranges::find(orders, labels) == orders.end()) orders.push_back(labels);
  } while (std::next_permutation(order.begin(), order.end()));
  const std::string own = memory_order(layouts[t]);
  std::ranges::stable_sort(orders, std::greater(), [&](const std::string& labels) { return in_place(labels, own); });
  return orders;
}

struct Search {
  const Layouts& layouts;
  const IndexSizes& sizes;
  Copied copied;
  std::optional<ContractRun> best = {};

  // Tries every order for every copied tensor from `next` on.
  void run(std::size_t next, const Layouts& now, const std::array<std::string, kTensors>& orders) {
    while (next < kTensors && !copied[next]) ++next;
    if (next == kTensors) {
      std::optional<ContractRun> found = best_run(now, sizes);
      if (!found || (best && !better(*found, *best))) return;
      found->copied = orders;
      best = std::move(found);
      return;
    }
    for (const std::string& labels : copies_of(next, layouts, copied)) {
      Layouts changed = now;
      changed[next] = dense_layout(labels, sizes);
      std::array<std::string, kTensors> chosen = orders;
      chosen[next] = labels;
      run(next + 1, changed, chosen);
    }
  }
};

std::int64_t elements(const IndexLayout& layout, const IndexSizes& sizes) {
  std::int64_t count = 1;
  for (const char label : layout.labels) count *= sizes.at(label);
  return count;
}

// True if an index longer than 1 has stride 0: no library accepts such a matrix.
bool repeats(const IndexLayout& layout, const IndexSizes& sizes) {
  for (std::size_t i = 0; i < layout.labels.size(); ++i) {
    if (layout.strides[i] == 0 && sizes.at(layout.labels[i]) > 1) return true;
  }
  return false;
}

// The subsets of tensors to copy, best first: few tensors, then few elements, then operands before the result, which would have
// to be written twice.
std::vector<Copied> subsets(const Layouts& layouts, const IndexSizes& sizes) {
  std::vector<std::tuple<int, std::int64_t, bool, Copied>> all;
  for (unsigned bits = 0; bits < 1U << kTensors; ++bits) {
    Copied copied{};
    std::int64_t count = 0;
    bool complete = true;
    for (std::size_t t = 0; t < kTensors; ++t) {
      copied[t] = (bits >> t & 1U) != 0;
      if (copied[t]) count += elements(layouts[t], sizes);
      complete = complete && (copied[t] || !repeats(layouts[t], sizes));
    }
    if (complete) all.emplace_back(std::popcount(bits), count, copied[kResult], copied);
  }
  std::ranges::sort(all);
  std::vector<Copied> sorted;
  for (const auto& [tensors, count, result, copied] : all) sorted.push_back(copied);
  return sorted;
}

}  // namespace

IndexLayout dense_layout(const std::string& labels, const IndexSizes& sizes) {
  IndexLayout layout{labels, std::vector<std::int64_t>(labels.size())};
  std::int64_t stride = 1;
  for (std::size_t i = labels.size(); i-- > 0;) {
    layout.strides[i] = stride;
    stride *= sizes.at(labels[i]);
  }
  return layout;
}

ContractRun plan_run(const Layouts& layouts, const IndexSizes& sizes, ContractCopies copies) {
  for (const auto& [label, size] : sizes) {
    if (size == 0) return {.plan = {.calls = 0, .text = str("nothing: index ", std::string(1, label), " has no elements")}};
  }
  std::optional<ContractRun> best;
  double least = 0;
  for (const Copied& copied : subsets(layouts, sizes)) {
    const auto count = std::ranges::count(copied, true);
    if (best && (copies == ContractCopies::where_needed || count > kMostChosenCopies)) break;
    Search search{layouts, sizes, copied};
    search.run(0, layouts, {});
    if (!search.best) continue;
    double cost = cost_of(*search.best);
    for (std::size_t t = 0; t < kTensors; ++t) {
      if (copied[t]) cost += kCopy + kCopiedElement * static_cast<double>(elements(layouts[t], sizes));
    }
    if (best && cost >= least) continue;
    least = cost;
    best = std::move(search.best);
    best->plan.copies = static_cast<int>(count);
  }
  TESSERA_CHECK(best, InternalError, "contract: no plan, although a copy of all three tensors is one");
  constexpr const char* kNames[] = {"the left operand", "the right operand", "the result"};
  for (std::size_t t = 0; t < kTensors; ++t) {
    if (!best->copied[t].empty()) best->plan.text += str(", ", kNames[t], " copied as ", best->copied[t]);
  }
  return std::move(*best);
}

}  // namespace tessera::linalg

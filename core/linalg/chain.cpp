#include "core/linalg/chain.h"

#include <bit>
#include <tuple>

#include "core/linalg/contract.h"
#include "core/linalg/equation.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

using Subset = unsigned;  // bit i: operand i

struct Cost {
  double flops = 0;
  double elements = 0;  // of intermediate results

  friend bool operator<(const Cost& x, const Cost& y) { return std::tie(x.flops, x.elements) < std::tie(y.flops, y.elements); }
};

class Planner {
 public:
  Planner(const Equation& equation, const IndexSizes& sizes)
      : equation_(equation), sizes_(sizes), all_((1U << equation.operands.size()) - 1), best_(all_ + 1), split_(all_ + 1) {
    for (Subset set = 1; set <= all_; ++set) {
      if (std::popcount(set) > 1) choose_split(set);
    }
  }

  ChainPlan plan(std::size_t element_size) const {
    ChainPlan chain;
    if (std::has_single_bit(all_)) return chain;
    add_steps(all_, chain);
    chain.steps.back().equation.replace(chain.steps.back().equation.find("->") + 2, std::string::npos, equation_.output);
    chain.flops = best_[all_].flops;
    chain.bytes = static_cast<std::int64_t>(best_[all_].elements) * static_cast<std::int64_t>(element_size);
    return chain;
  }

 private:
  bool needed_outside(Subset set, char label) const {
    for (std::size_t i = 0; i < equation_.operands.size(); ++i) {
      if ((set >> i & 1U) == 0 && equation_.operands[i].find(label) != std::string::npos) return true;
    }
    return equation_.output.find(label) != std::string::npos;
  }

  // Labels of the tensor that a subset contracts to: those that other operands or the output have. A split sets their order: the
  // labels of its left part, then those that the right part adds, each in the order of that part, so that they flatten.
  std::string labels(Subset set) const {
    if (std::has_single_bit(set)) return equation_.operands[static_cast<std::size_t>(std::countr_zero(set))];
    std::string kept;
    for (const char label : united(split_[set], set & ~split_[set])) {
      if (needed_outside(set, label)) kept += label;
    }
    return kept;
  }

  std::string united(Subset left, Subset right) const {
    std::string all = labels(left);
    for (const char label : labels(right)) {
      if (all.find(label) == std::string::npos) all += label;
    }
    return all;
  }

  double elements(const std::string& labels) const {
    double count = 1;
    for (const char label : labels) count *= static_cast<double>(sizes_.at(label));
    return count;
  }

  // All proper subsets of `set` have a split already. The part with the lowest operand is the left one.
  void choose_split(Subset set) {
    const Subset lowest = set & -set;
    bool first = true;
    for (Subset left = (set - 1) & set; left != 0; left = (left - 1) & set) {
      if ((left & lowest) == 0) continue;
      const Subset right = set & ~left;
      Cost cost{best_[left].flops + best_[right].flops + 2 * elements(united(left, right)),
                best_[left].elements + best_[right].elements};
      for (const Subset part : {left, right}) {
        if (!std::has_single_bit(part)) cost.elements += elements(labels(part));
      }
      if (!first && !(cost < best_[set])) continue;
      first = false;
      best_[set] = cost;
      split_[set] = left;
    }
  }

  // Adds the steps of the subset. Returns the number of the tensor that holds its contraction.
  int add_steps(Subset set, ChainPlan& chain) const {
    if (std::has_single_bit(set)) return std::countr_zero(set);
    const Subset left = split_[set], right = set & ~left;
    const int first = add_steps(left, chain), second = add_steps(right, chain);
    chain.steps.push_back({first, second, labels(left) + ',' + labels(right) + "->" + labels(set)});
    return static_cast<int>(equation_.operands.size() + chain.steps.size()) - 1;
  }

  const Equation& equation_;
  const IndexSizes& sizes_;
  Subset all_;
  std::vector<Cost> best_;  // per subset
  std::vector<Subset> split_;  // the left part of each subset
};

Tensor in_order(const Tensor& tensor, const std::string& labels, const std::string& output) {
  std::vector<int> axes;
  for (const char label : output) axes.push_back(static_cast<int>(labels.find(label)));
  return tensor.permute(axes).clone();
}

}  // namespace

ChainPlan plan_chain(std::string_view text, std::span<const Tensor> operands) {
  const Equation equation = parse_equation(text);
  TESSERA_CHECK(std::ssize(equation.operands) <= kMaxChain, ShapeError, "contract: '", text, "' names ", equation.operands.size(),
                " operands; a chain has at most ", kMaxChain);
  const IndexSizes sizes = index_sizes(equation, operands);
  return Planner(equation, sizes).plan(size_of(operands.front().dtype()));
}

Tensor contract(std::string_view text, std::span<const Tensor> operands) {
  const ChainPlan plan = plan_chain(text, operands);
  if (plan.steps.empty()) {
    const Equation equation = parse_equation(text);
    return in_order(operands.front(), equation.operands.front(), equation.output);
  }
  std::vector<Tensor> tensors(operands.begin(), operands.end());
  for (const ChainPlan::Step& step : plan.steps) {
    Tensor& left = tensors[static_cast<std::size_t>(step.left)];
    Tensor& right = tensors[static_cast<std::size_t>(step.right)];
    Tensor result = contract(step.equation, left, right);
    left = right = {};  // frees the operands: each is read once
    tensors.push_back(std::move(result));
  }
  return tensors.back();
}

}  // namespace tessera::linalg

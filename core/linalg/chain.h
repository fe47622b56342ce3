// Contraction of several tensors, two at a time, in the cheapest order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace tessera::linalg {

constexpr int kMaxChain = 10;

// Tensors are numbered: the operands from 0 in the equation's order, then the results of the steps.
struct ChainPlan {
  struct Step {
    int left, right;
    std::string equation;  // as of contract()
  };
  std::vector<Step> steps;
  double flops = 0;  // two for each multiplication that is added up
  std::int64_t bytes = 0;  // of all results but the last
};

// The order of pairs with the fewest FLOPs and, of several, the fewest bytes of intermediate results: by dynamic programming over
// the subsets of operands, products of operands without a common index included. Throws what parse_equation and index_sizes
// throw, ShapeError on more than kMaxChain operands.
ChainPlan plan_chain(std::string_view equation, std::span<const Tensor> operands);

// Computes "ab,bc,cd->ad" with plan_chain() and contract(). A single operand is copied, in the output's dimension order. An index
// may stand in more than two operands. Throws the same, and what contract() throws.
Tensor contract(std::string_view equation, std::span<const Tensor> operands);

}  // namespace tessera::linalg

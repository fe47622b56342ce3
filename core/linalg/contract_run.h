// A planned contraction: what contract.h promises, with the strides and orders that running it needs. Private to core/linalg.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/linalg/contract.h"
#include "core/linalg/equation.h"
#include "core/ops/strided_matmul.h"

namespace tessera::linalg {

// Indices of the left operand, the right one and the result, in all arrays of three below.
constexpr std::size_t kLeft = 0, kRight = 1, kResult = 2;

// Where the elements of a tensor lie: one letter and one stride for each dimension.
struct IndexLayout {
  std::string labels;
  std::vector<std::int64_t> strides = {};
};
// Without gaps, the last of `labels` fastest.
IndexLayout dense_layout(const std::string& labels, const IndexSizes& sizes);

struct ContractRun {
  struct Loop {
    std::int64_t size;
    std::array<std::int64_t, 3> strides;  // 0 where a tensor lacks the index
  };

  ContractPlan plan = {};
  StridedProduct product = {};
  bool swapped = false;  // the product computes y' = b' a', so that y's columns have stride 1
  std::vector<Loop> loops = {};
  std::array<std::string, 3> copied = {};  // the order of indices of a tensor's copy; empty where the tensor itself is used
};

// The layouts of the operands as they are, and of the result as it is to be.
ContractRun plan_run(const std::array<IndexLayout, 3>& layouts, const IndexSizes& sizes, ContractCopies copies);

}  // namespace tessera::linalg

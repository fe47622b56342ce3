// One parallel region over the elements of many tensors, most of which are too small for threads of their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/tensor.h"

namespace tessera::cpu {

// Calls body(i, begin, end) for parts of tensor_of(operands[i]) that together cover every tensor. Each thread has one contiguous
// share of all elements put end to end; `grain` is the smallest worth a thread.
template <class Operand, class TensorOf, class Body>
void parallel_tensors(std::span<const Operand> operands, std::int64_t grain, const TensorOf& tensor_of, Body&& body) {
  std::vector<std::int64_t> ends;
  ends.reserve(operands.size());
  std::int64_t total = 0;
  for (const Operand& operand : operands) ends.push_back(total += tensor_of(operand).numel());
  parallel_for(total, grain, [&](std::int64_t begin, std::int64_t end) {
    auto i = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (std::int64_t at = begin; at < end; at = ends[i++]) {
      const std::int64_t first = i == 0 ? 0 : ends[i - 1];
      if (at < ends[i]) body(i, at - first, std::min(end, ends[i]) - first);
    }
  });
}

}  // namespace tessera::cpu

// Einstein notation: "mk,knp->mnp" names the indices of each operand and of the result, one letter for each dimension. An index
// that the result lacks is summed over.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace tessera::linalg {

struct Equation {
  std::vector<std::string> operands;
  std::string output;
};

// Letters a-z and A-Z, no spaces. No index stands twice in one operand or in the output; each index of the output stands in an
// operand, and one that stands in a single operand stands in the output. Throws ShapeError naming the equation and the fault.
Equation parse_equation(std::string_view text);

// The size of each index. Throws ShapeError where the number of operands or of their dimensions differs from the equation's, or
// an index has two sizes, naming the operands with their shapes.
using IndexSizes = std::map<char, std::int64_t>;
IndexSizes index_sizes(const Equation& equation, std::span<const Tensor> operands);

}  // namespace tessera::linalg

#include "core/linalg/equation.h"

#include <algorithm>
#include <cctype>

#include "core/support/error.h"

namespace tessera::linalg {
namespace {

void check_labels(std::string_view text, const std::string& labels, const std::string& where) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    TESSERA_CHECK(std::isalpha(static_cast<unsigned char>(labels[i])), ShapeError, "contract: '", text, "': '",
                  labels.substr(i, 1), "' in ", where, " is no index; indices are letters");
    TESSERA_CHECK(labels.find(labels[i], i + 1) == std::string::npos, ShapeError, "contract: '", text, "': index '",
                  labels.substr(i, 1), "' stands twice in ", where, "; needs one letter for each dimension");
  }
}

std::string operand_name(std::size_t i) { return str("operand ", i + 1); }

}  // namespace

Equation parse_equation(std::string_view text) {
  const std::size_t arrow = text.find("->");
  TESSERA_CHECK(arrow != std::string_view::npos, ShapeError, "contract: '", text, "' has no '->'; needs one, as in 'mk,kn->mn'");
  Equation equation;
  equation.output = text.substr(arrow + 2);
  std::string all;
  for (std::size_t begin = 0; begin <= arrow;) {
    const std::size_t end = std::min(text.find(',', begin), arrow);
    equation.operands.emplace_back(text.substr(begin, end - begin));
    all += equation.operands.back();
    begin = end + 1;
  }
  for (std::size_t i = 0; i < equation.operands.size(); ++i) check_labels(text, equation.operands[i], operand_name(i));
  check_labels(text, equation.output, "the output");
  for (const char label : equation.output) {
    TESSERA_CHECK(all.find(label) != std::string::npos, ShapeError, "contract: '", text, "': index '", std::string(1, label),
                  "' of the output stands in no operand");
  }
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    for (const char label : equation.operands[i]) {
      const bool met = std::ranges::count(all, label) > 1 || equation.output.find(label) != std::string::npos;
      TESSERA_CHECK(met, ShapeError, "contract: '", text, "': index '", std::string(1, label), "' stands in ", operand_name(i),
                    " alone; needs to stand in another operand or in the output");
    }
  }
  return equation;
}

IndexSizes index_sizes(const Equation& equation, std::span<const Tensor> operands) {
  TESSERA_CHECK(operands.size() == equation.operands.size(), ShapeError, "contract: ", operands.size(),
                " operands are given, the equation names ", equation.operands.size());
  IndexSizes sizes;
  std::map<char, std::size_t> first;  // the operand in which an index occurred first
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string& labels = equation.operands[i];
    TESSERA_CHECK(operands[i].rank() == static_cast<int>(labels.size()), ShapeError, "contract: ", operand_name(i), " is ",
                  operands[i].shape(), "; '", labels, "' needs ", labels.size(), " dimensions");
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      const std::int64_t size = operands[i].dim(static_cast<int>(axis));
      const auto [known, is_new] = sizes.emplace(labels[axis], size);
      if (is_new) first[labels[axis]] = i;
      const std::size_t other = first[labels[axis]];
      TESSERA_CHECK(known->second == size, ShapeError, "contract: index '", labels.substr(axis, 1), "' is ", known->second,
                    " in ", operand_name(other), " ", operands[other].shape(), " and ", size, " in ", operand_name(i), " ",
                    operands[i].shape(), "; sizes must be equal");
    }
  }
  return sizes;
}

}  // namespace tessera::linalg

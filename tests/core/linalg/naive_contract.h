// Einstein notation by nested loops in double, for any number of operands.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/core/linalg/linalg_support.h"

namespace tessera::testing {

// f64. The equation must be right.
inline Tensor naive_contract(const std::string& equation, const std::vector<Tensor>& operands) {
  std::vector<std::string> labels(1);
  const std::size_t arrow = equation.find("->");
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') {
      labels.emplace_back();
    } else {
      labels.back() += c;
    }
  }
  labels.push_back(equation.substr(arrow + 2));
  std::map<char, std::int64_t> sizes;
  std::vector<std::vector<double>> data;
  std::int64_t points = 1;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t axis = 0; axis < labels[i].size(); ++axis) sizes[labels[i][axis]] = operands[i].dim(static_cast<int>(axis));
    data.push_back(values(operands[i]));
  }
  std::vector<std::int64_t> shape;
  for (const char c : labels.back()) shape.push_back(sizes.at(c));
  const Shape of_result{std::span<const std::int64_t>(shape)};
  for (const auto& [label, size] : sizes) points *= size;

  std::vector<double> result(static_cast<std::size_t>(of_result.numel()), 0.0);
  std::map<char, std::int64_t> index;
  const auto at = [&](const std::string& of) {
    std::int64_t flat = 0;
    for (const char c : of) flat = flat * sizes.at(c) + index.at(c);
    return static_cast<std::size_t>(flat);
  };
  for (std::int64_t point = 0; point < points; ++point) {
    std::int64_t rest = point;
    for (const auto& [label, size] : sizes) {
      index[label] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (std::size_t i = 0; i < data.size(); ++i) product *= data[i][at(labels[i])];
    result[at(labels.back())] += product;
  }
  return Tensor::from(result, of_result);
}

}  // namespace tessera::testing

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

  // Steps of each tensor's flat index along each index of the equation; an odometer over these.
  std::vector<std::vector<std::int64_t>> steps;
  for (const std::string& of : labels) {
    std::vector<std::int64_t>& along = steps.emplace_back();
    for (const auto& [label, size] : sizes) {
      const std::size_t axis = of.find(label);
      std::int64_t step = axis == std::string::npos ? 0 : 1;
      for (std::size_t inner = axis; axis != std::string::npos && ++inner < of.size();) step *= sizes.at(of[inner]);
      along.push_back(step);
    }
  }
  std::vector<std::int64_t> at(labels.size(), 0);
  std::vector<std::int64_t> index(sizes.size(), 0);
  std::vector<double> result(static_cast<std::size_t>(of_result.numel()), 0.0);
  for (std::int64_t point = 0; point < points; ++point) {
    double product = 1;
    for (std::size_t i = 0; i < data.size(); ++i) product *= data[i][static_cast<std::size_t>(at[i])];
    result[static_cast<std::size_t>(at.back())] += product;
    std::size_t digit = 0;
    for (const auto& [label, size] : sizes) {
      for (std::size_t i = 0; i < at.size(); ++i) at[i] += steps[i][digit];
      if (++index[digit] < size) break;
      for (std::size_t i = 0; i < at.size(); ++i) at[i] -= size * steps[i][digit];
      index[digit++] = 0;
    }
  }
  return Tensor::from(result, of_result);
}

}  // namespace tessera::testing

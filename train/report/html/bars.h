// Two numbers of each layer, dense and compressed, as bars.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct BarPair {
  std::string label;
  std::optional<double> dense;  // not below 0; no bar where it is empty or has no place on an axis
  std::optional<double> compressed;
};

struct BarChart {
  std::string id;  // in the page
  std::string title;
  std::string unit = {};  // behind the numbers
  std::vector<BarPair> pairs;
};

// Empty where no pair has a number.
std::string bars_html(const BarChart& chart);

}  // namespace tessera

// One option of each layer, at least loss within a budget.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tessera {

struct LayerOption {
  double cost = 0;  // not negative
  double loss = 0;
};

// The index of the option chosen for each layer. The costs sum to at most `budget`, and the losses to the least of all such
// choices, with each cost rounded up to a multiple of a four-thousandth of the budget. Empty where even the cheapest options
// cost more. Solved by dynamic programming over the layers (multiple-choice knapsack problem; Kellerer, Pferschy, Pisinger,
// Knapsack Problems, 2004, section 11.5). Every layer needs an option.
std::optional<std::vector<std::size_t>> least_loss(std::span<const std::vector<LayerOption>> layers, double budget);

}  // namespace tessera

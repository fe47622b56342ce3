// Compares the least loss within a budget with every possible choice.
#include "compress/ranks/knapsack.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace tessera::testing {
namespace {

using Layers = std::vector<std::vector<LayerOption>>;

double least_by_trial(const Layers& layers, double budget, std::size_t layer = 0, double cost = 0, double loss = 0) {
  if (cost > budget) return std::numeric_limits<double>::infinity();
  if (layer == layers.size()) return loss;
  double least = std::numeric_limits<double>::infinity();
  for (const LayerOption& option : layers[layer]) {
    least = std::min(least, least_by_trial(layers, budget, layer + 1, cost + option.cost, loss + option.loss));
  }
  return least;
}

TEST(Knapsack, FindsTheLeastLoss) {
  std::mt19937 random(1);
  const auto whole = [&](int most) { return static_cast<double>(std::uniform_int_distribution<int>(0, most)(random)); };
  int possible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Layers layers(static_cast<std::size_t>(1 + trial % 5));
    for (auto& options : layers) {
      for (int i = 0; i < 1 + trial % 4; ++i) options.push_back({whole(20), whole(50)});
    }
    const double budget = 40;  // costs are whole, so that the grid rounds none
    const auto chosen = least_loss(layers, budget);
    const double least = least_by_trial(layers, budget);
    ASSERT_EQ(chosen.has_value(), least < std::numeric_limits<double>::infinity()) << trial;
    if (!chosen) continue;
    ++possible;
    double cost = 0, loss = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      cost += layers[i].at(chosen->at(i)).cost;
      loss += layers[i].at(chosen->at(i)).loss;
    }
    EXPECT_LE(cost, budget) << trial;
    EXPECT_EQ(loss, least) << trial;
  }
  EXPECT_GT(possible, 100);
}

TEST(Knapsack, CostsBetweenGridLinesNeverExceedTheBudget) {
  const Layers layers{{{1.0 / 3, 5}, {0.1, 7}}, {{2.0 / 3, 5}, {0.1, 7}}};
  const auto chosen = least_loss(layers, 1.001);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(*chosen, (std::vector<std::size_t>{0, 0}));
  EXPECT_EQ(least_loss(layers, 0.2002), (std::vector<std::size_t>{1, 1}));
  EXPECT_FALSE(least_loss(layers, 0.19));
  EXPECT_FALSE(least_loss(layers, -1));
}

}  // namespace
}  // namespace tessera::testing

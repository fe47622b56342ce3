// A small network with what blocks of pruning meet: convolutions, a norm, a factored layer, a last linear layer.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "compress/prune/prune.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/svd_linear.h"

namespace tessera::testing {

using Bits = std::vector<std::uint8_t>;
using Texts = std::vector<std::string>;
inline constexpr StageLength kStage{.steps = 100, .steps_per_epoch = 10};

inline Tensor mask_or_ones(const Parameter& weight) {
  return weight.mask().defined() ? weight.mask().clone() : Tensor::full(weight.value().shape(), 1, DType::u8);
}

class Pruning : public ::testing::Test {
 protected:
  Pruning() : model_(std::make_unique<Sequential>()) {
    model_->add_child("stem", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 8, .kernel = {3, 3}}));
    model_->add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 8}));
    model_->add_child("wide", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 32, .kernel = {3, 3}}));
    model_->add_child("narrow", std::make_unique<Conv2d>(Conv2dConfig{.in = 32, .out = 5, .kernel = {1, 1}}));
    model_->add_child("factored", std::make_unique<SvdLinear>(SvdLinearConfig{.in = 20, .out = 12, .rank = 3}));
    model_->add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 12, .out = 10}));
    initialize(*model_, 1);
  }

  static PruneConfig config(double target = 0.8) {
    PruneConfig config;
    config.sparsity.target = target;
    config.sparsity.every = Duration::steps(10);
    return config;
  }
  Texts paths(const PruneConfig& config) {
    std::vector<BlockProblem> problems;
    Texts found;
    for (const PrunedWeight& weight : pruned_weights(config, *model_, problems)) found.push_back(weight.path);
    EXPECT_TRUE(problems.empty());
    return found;
  }
  Prune run(const PruneConfig& config, std::int64_t steps = kStage.steps) {
    Prune prune(config, *model_, kStage, {.seed = 7});
    prune.on_stage_begin(*model_);
    for (std::int64_t step = 1; step <= steps; ++step) prune.between_steps(*model_, step);
    return prune;
  }
  std::vector<PrunedWeight> weights(const PruneConfig& config) {
    std::vector<BlockProblem> problems;
    return pruned_weights(config, *model_, problems);
  }

  std::unique_ptr<Module> model_;
};

}  // namespace tessera::testing

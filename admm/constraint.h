// Sets of weights that training is held to, and the projections onto them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "admm/config.h"
#include "compress/low_rank.h"
#include "compress/ranks/block_problem.h"
#include "core/nn/module.h"
#include "core/tensor.h"

namespace tessera {

class Constraint {
 public:
  virtual ~Constraint() = default;
  // The nearest weight of the set, or the one that the form's decomposition reaches where none is known to be nearest. It has
  // the weight's shape, dtype and device. Equal weights give equal bytes, in any thread. Throws NumericError on NaN or Inf.
  virtual Tensor project(const Tensor& weight) const = 0;
};

// Weights that the form for this layer (Format::for_layer) holds exactly at these ranks; null: the form itself.
std::unique_ptr<const Constraint> low_rank_constraint(const LowRankConfig& config, const Ranks& ranks,
                                                      const Module* layer = nullptr);

// Weights of at most `kept` elements that are not zero: the projection keeps those of largest magnitude, of equal ones the first,
// which is the nearest such weight. Values are compared in f32. Throws ConfigError on a negative `kept`.
std::unique_ptr<const Constraint> top_k_constraint(std::int64_t kept);

// What a layer's weight is held to.
struct ConstrainedLayer {
  std::string path;
  std::shared_ptr<const Constraint> constraint;
};

// The weights of linear layers and convolutions that config.layers selects, each held to the share of its elements that
// config.sparsity leaves. Problems of the selector are appended.
std::vector<ConstrainedLayer> sparse_layers(const AdmmConfig& config, Module& model, std::vector<BlockProblem>& problems);

std::vector<ConstrainedLayer> low_rank_layers(const LowRankConfig& config, const std::vector<LayerRanks>& layers, Module& model);

}  // namespace tessera

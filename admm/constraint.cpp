#include "admm/constraint.h"

#include <algorithm>

#include "compress/patterns/unstructured.h"
#include "compress/prune/scores.h"
#include "compress/prune/targets.h"
#include "core/autograd/var.h"
#include "core/finite.h"
#include "core/ops/where.h"
#include "core/support/error.h"

namespace tessera {
namespace {

constexpr std::string_view kWeight = "weight";

class LowRank final : public Constraint {
 public:
  LowRank(const LowRankConfig& config, const Ranks& ranks, const Module* layer)
      : form_(config.form()),
        held_(layer == nullptr ? *form_ : form_->for_layer(*layer)),
        ranks_(ranks),
        options_(config.decomposition.value_or(ProjectOptions())) {}

  Tensor project(const Tensor& weight) const override {
    return held_.compose(held_.project(weight, ranks_, options_), weight.shape()).to(weight.device());
  }

 private:
  std::shared_ptr<const Format> form_;
  const Format& held_;  // refers into form_
  Ranks ranks_;
  ProjectOptions options_;
};

class TopK final : public Constraint {
 public:
  explicit TopK(std::int64_t kept) : kept_(kept) {}

  Tensor project(const Tensor& weight) const override {
    TESSERA_CHECK(all_finite(weight), NumericError, "the weight contains NaN or Inf");
    const std::vector<Tensor> scores{magnitudes(weight)};
    const Tensor mask = UnstructuredPattern().project(scores, std::min(kept_, weight.numel())).front();
    const NoGrad no_grad;
    return where(mask.to(weight.device()), Var(weight), Var(Tensor::zeros({}, weight.dtype(), weight.device()))).value();
  }

 private:
  std::int64_t kept_;
};

}  // namespace

std::unique_ptr<const Constraint> top_k_constraint(std::int64_t kept) {
  TESSERA_CHECK(kept >= 0, ConfigError, "top_k_constraint: kept is ", kept, "; it cannot be negative");
  return std::make_unique<TopK>(kept);
}

std::unique_ptr<const Constraint> low_rank_constraint(const LowRankConfig& config, const Ranks& ranks, const Module* layer) {
  return std::make_unique<LowRank>(config, ranks, layer);
}

std::vector<ConstrainedLayer> sparse_layers(const AdmmConfig& config, Module& model, std::vector<BlockProblem>& problems) {
  PruneConfig selected;
  selected.layers = config.layers;
  std::vector<ConstrainedLayer> constrained;
  for (const PrunedWeight& weight : pruned_weights(selected, model, problems)) {
    if (weight.parameter->name() != kWeight) continue;  // a factor of a compressed layer
    const std::int64_t kept = budgets("layer", {&weight, 1}, *config.sparsity).front().kept;
    constrained.push_back({weight.layer, top_k_constraint(kept)});
  }
  if (constrained.empty() && problems.empty()) problems.push_back({"layers", "admm: no layer has a dense weight to hold"});
  return constrained;
}

std::vector<ConstrainedLayer> low_rank_layers(const LowRankConfig& config, const std::vector<LayerRanks>& layers, Module& model) {
  std::vector<ConstrainedLayer> constrained;
  for (const LayerRanks& layer : layers) {
    constrained.push_back({layer.path, low_rank_constraint(config, layer.ranks, &find_module(model, layer.path))});
  }
  return constrained;
}

}  // namespace tessera

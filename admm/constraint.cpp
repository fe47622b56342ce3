#include "admm/constraint.h"

namespace tessera {
namespace {

class LowRank final : public Constraint {
 public:
  LowRank(const LowRankConfig& config, const Ranks& ranks)
      : form_(config.form()), ranks_(ranks), options_(config.decomposition.value_or(ProjectOptions())) {}

  Tensor project(const Tensor& weight) const override {
    return form_->compose(form_->project(weight, ranks_, options_), weight.shape()).to(weight.device());
  }

 private:
  std::shared_ptr<const Format> form_;
  Ranks ranks_;
  ProjectOptions options_;
};

}  // namespace

std::unique_ptr<const Constraint> low_rank_constraint(const LowRankConfig& config, const Ranks& ranks) {
  return std::make_unique<LowRank>(config, ranks);
}

std::vector<ConstrainedLayer> low_rank_layers(const LowRankConfig& config, const std::vector<LayerRanks>& layers) {
  std::vector<ConstrainedLayer> constrained;
  for (const LayerRanks& layer : layers) constrained.push_back({layer.path, low_rank_constraint(config, layer.ranks)});
  return constrained;
}

}  // namespace tessera

#include "admm/admm_pass.h"

namespace tessera {
namespace {

FactoriseConfig with(const LowRankConfig& low_rank) {
  FactoriseConfig config;
  static_cast<LowRankConfig&>(config) = low_rank;
  return config;
}

}  // namespace

AdmmPass::AdmmPass(const LowRankConfig& config, Values values) : FactorisePass(with(config), values) {}

std::vector<LayerRanks> constrained_layers(const PassReport& report) {
  std::vector<LayerRanks> layers;
  for (const LayerReport& row : report.layers) {
    if (!row.stays_dense()) layers.push_back({row.path, row.ranks.value()});
  }
  return layers;
}

}  // namespace tessera

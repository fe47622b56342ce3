// The pass that settles which layers an ADMM stage constrains, and at which ranks. It runs on a copy of the network; the network
// itself trains on unchanged.
#pragma once

#include "admm/config.h"
#include "compress/factorise.h"

namespace tessera {

class AdmmPass final : public FactorisePass {
 public:
  explicit AdmmPass(const LowRankConfig& config, Values values = Values::decomposed);

  std::string_view name() const override { return "admm"; }
  std::string_view done() const override { return kDone; }

  static constexpr const char* kDone = "constrained";
};

// The layers that the pass's report says are to be constrained.
std::vector<LayerRanks> constrained_layers(const PassReport& report);

}  // namespace tessera

// What stages leave for later ones, under their names: `factorise: {from: admm}` reads what the stage `admm` settled.
#pragma once

#include <string>
#include <vector>

#include "compress/low_rank.h"

namespace tessera {

struct StageResult {
  std::string stage;
  std::vector<LayerRanks> layers;  // that it constrains, at these ranks
  void fields(Fields& f);
};

// Part of every checkpoint.
struct StageResults {
  std::vector<StageResult> stages;

  const StageResult* find(const std::string& stage) const;  // null where it left nothing
  void fields(Fields& f);
};

}  // namespace tessera

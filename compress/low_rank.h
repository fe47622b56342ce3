// Which layers become low-rank, in which form, at which ranks, and where they have to be faster.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compress/formats/builtin.h"
#include "compress/ranks/rank_rules.h"
#include "compress/ranks/rank_select.h"
#include "compress/timing/veto.h"
#include "core/config/fields.h"

namespace tessera {

// The keys that the blocks `factorise` and `admm` share.
struct LowRankConfig {
  Value layers;  // a selector, or a list of selectors (core/nn/selector.h)
  std::string format{builtin_formats().front()->name()};
  RankConfig ranks;  // for all layers; not read when there are rules
  std::vector<RankRule> rank_rules;  // `ranks` as a list; the last rule that matches a layer holds for it
  std::string keep = "faster";
  KeepForConfig keep_for;
  std::optional<ModesConfig> modes;  // of formats that split channels; refused for others
  std::optional<ProjectOptions> decomposition;  // of formats that sweep; refused for others
  void fields(Fields& f);
  void layers_field(Fields& f);

  // Every rank rule of the block, with its key.
  std::vector<std::pair<std::string, const RankConfig*>> rank_configs() const;
  bool ranks_by_latency() const;  // of any layer
  const Format* known_format() const;  // null where `format` names none
  std::shared_ptr<const Format> form() const;  // with its modes; throws ConfigError where `format` names none
};

// The ranks that were settled for a layer.
struct LayerRanks {
  std::string path;
  Ranks ranks;
  void fields(Fields& f);
};

}  // namespace tessera

// Ranks that differ from layer to layer: an ordered list of rules. The last that matches a layer holds for it, so that a
// general rule comes first and its exceptions after it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/ranks/block_problem.h"
#include "compress/ranks/rank_select.h"
#include "core/config/fields.h"

namespace tessera {

// {layers: "layer1.*", macs: 0.4}. `per: matched` is over the layers that the rule holds for; `per: network` would count the
// layers of other rules too, whose ranks are not known, and is refused.
struct RankRule {
  Value layers;  // a selector, or a list of selectors (core/nn/selector.h), among the layers that the stage matches
  RankConfig ranks;
  void fields(Fields& f);
};

// The rule that holds for each path. A rule with a selector that matches no path (naming the nearest), a rule whose paths all
// belong to later rules, and paths that no rule matches are added to `problems` under "ranks..."; the paths are empty in the
// result.
std::vector<std::optional<std::size_t>> assign_rules(std::span<const RankRule> rules, std::span<const std::string> paths,
                                                     std::vector<BlockProblem>& problems);

}  // namespace tessera

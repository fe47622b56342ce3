// Ordered rules over layers: the last rule whose selectors match a layer holds for it, so that a general rule comes first and its
// exceptions after it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/ranks/block_problem.h"
#include "core/config/value.h"

namespace tessera {

struct LastMatches {
  std::vector<std::optional<std::size_t>> rule_of;  // of each path; empty where no rule matches
  bool all_match = true;  // each rule some path
};

// `selectors`: those of each rule. A rule with a selector that matches no path (naming the nearest), and one whose paths all
// belong to later rules, is added to `problems` under "KEY[i].layers".
LastMatches last_matches(std::span<const Value> selectors, std::string_view key, std::span<const std::string> paths,
                         std::vector<BlockProblem>& problems);

}  // namespace tessera

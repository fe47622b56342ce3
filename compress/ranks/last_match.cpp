#include "compress/ranks/last_match.h"

#include <algorithm>

#include "core/nn/selector.h"
#include "core/support/error.h"

namespace tessera {

LastMatches last_matches(std::span<const Value> selectors, std::string_view key, std::span<const std::string> paths,
                         std::vector<BlockProblem>& problems) {
  LastMatches found{.rule_of = std::vector<std::optional<std::size_t>>(paths.size())};
  std::vector<bool> matches(selectors.size(), false);
  for (std::size_t r = 0; r < selectors.size(); ++r) {
    try {
      for (const std::string& path : select(selector_patterns(selectors[r]), paths)) {
        found.rule_of[static_cast<std::size_t>(std::find(paths.begin(), paths.end(), path) - paths.begin())] = r;
      }
      matches[r] = true;
    } catch (const ConfigError& error) {
      problems.push_back({str(key, '[', r, "].layers"), error.what()});
      found.all_match = false;
    }
  }
  for (std::size_t r = 0; r < selectors.size(); ++r) {
    if (!matches[r] || std::find(found.rule_of.begin(), found.rule_of.end(), r) != found.rule_of.end()) continue;
    problems.push_back({str(key, '[', r, "].layers"), str("later rules take every layer that ", to_json(selectors[r]),
                                                          " matches; the last rule that matches a layer holds")});
  }
  return found;
}

}  // namespace tessera

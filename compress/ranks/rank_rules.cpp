#include "compress/ranks/rank_rules.h"

#include <algorithm>

#include "core/nn/selector.h"
#include "core/support/error.h"

namespace tessera {
namespace {

std::string uncovered(std::span<const std::string> paths, std::span<const std::optional<std::size_t>> rule_of) {
  std::string names;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!rule_of[i]) names += str(names.empty() ? "'" : ", '", paths[i], '\'');
  }
  return names;
}

}  // namespace

void RankRule::fields(Fields& f) {
  f.add("layers", layers,
        {.help = "selector, or a list of selectors, of the matched layers that this rule is for",
         .example = "'layer1.*'",
         .observable = "report",
         .required = true});
  ranks.rule_fields(f);
  f.require(is_selector(layers), "layers", "needs a selector or a list of selectors");
  f.require(ranks.kinds() == 1, "", "give exactly one of explicit ranks, params, macs, energy, error, vbmf");
  f.require(ranks.per != "network", "per", "a rule's fraction is per layer or matched; network counts the layers of other rules");
}

std::vector<std::optional<std::size_t>> assign_rules(std::span<const RankRule> rules, std::span<const std::string> paths,
                                                     std::vector<BlockProblem>& problems) {
  std::vector<std::optional<std::size_t>> rule_of(paths.size());
  std::vector<bool> matches(rules.size(), false);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    try {
      for (const std::string& path : select(selector_patterns(rules[r].layers), paths)) {
        rule_of[static_cast<std::size_t>(std::find(paths.begin(), paths.end(), path) - paths.begin())] = r;
      }
      matches[r] = true;
    } catch (const ConfigError& error) {
      problems.push_back({str("ranks[", r, "].layers"), error.what()});
    }
  }
  for (std::size_t r = 0; r < rules.size(); ++r) {
    if (!matches[r] || std::find(rule_of.begin(), rule_of.end(), r) != rule_of.end()) continue;
    problems.push_back({str("ranks[", r, "].layers"), str("later rules take every layer that ", to_json(rules[r].layers),
                                                          " matches; the last rule that matches a layer holds")});
  }
  // A rule that failed above may be the one that was meant to cover them.
  const std::string names = uncovered(paths, rule_of);
  if (!names.empty() && std::find(matches.begin(), matches.end(), false) == matches.end()) {
    problems.push_back({"ranks", str("no rule covers ", names, "; add a rule for it, or match fewer layers")});
  }
  return rule_of;
}

}  // namespace tessera

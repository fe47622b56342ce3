#include "compress/ranks/rank_rules.h"

#include "compress/ranks/last_match.h"
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
  std::vector<Value> selectors;
  for (const RankRule& rule : rules) selectors.push_back(rule.layers);
  const LastMatches found = last_matches(selectors, "ranks", paths, problems);
  // A rule that failed above may have been meant to cover them.
  const std::string names = uncovered(paths, found.rule_of);
  if (!names.empty() && found.all_match) {
    problems.push_back({"ranks", str("no rule covers ", names, "; add a rule for it, or match fewer layers")});
  }
  return found.rule_of;
}

}  // namespace tessera

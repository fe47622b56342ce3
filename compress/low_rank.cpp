#include "compress/low_rank.h"

#include <algorithm>

#include "core/nn/selector.h"
#include "core/support/error.h"

namespace tessera {

std::vector<std::pair<std::string, const RankConfig*>> LowRankConfig::rank_configs() const {
  if (rank_rules.empty()) return {{"ranks", &ranks}};
  std::vector<std::pair<std::string, const RankConfig*>> all;
  for (std::size_t r = 0; r < rank_rules.size(); ++r) all.emplace_back(str("ranks[", r, ']'), &rank_rules[r].ranks);
  return all;
}

bool LowRankConfig::ranks_by_latency() const {
  return std::ranges::any_of(rank_configs(), [](const auto& rule) { return rule.second->latency.has_value(); });
}

const Format* LowRankConfig::known_format() const {
  const auto found = std::ranges::find(builtin_formats(), format, [](const Format* form) { return form->name(); });
  return found == builtin_formats().end() ? nullptr : *found;
}

std::shared_ptr<const Format> LowRankConfig::form() const {
  const Format& plain = format_named(format);
  if (modes) return plain.with_modes(*modes);
  return {std::shared_ptr<const Format>(), &plain};  // not owned, because it lives as long as the program
}

void LowRankConfig::layers_field(Fields& f) {
  f.add("layers", layers,
        {.help = "selector of the layers, or a list of selectors",
         .example = "'layer[23].*.conv*'",
         .observable = "report",
         .required = true});
  f.require(is_selector(layers), "layers", "needs a selector or a list of selectors");
}

void LowRankConfig::fields(Fields& f) {
  layers_field(f);
  f.add("format", format, {.help = "form of the factored weight", .choices = format_names(), .observable = "report"});
  f.add_one_or_list("ranks", ranks, rank_rules,
                    {.help = "how many ranks to keep; in a list of rules the last that matches a layer holds for it",
                     .example = "[{layers: '*', macs: 0.4}, {layers: layer3.1.conv2, out: 32, in: 32}]",
                     .observable = "report",
                     .required = true});
  f.add("keep", keep,
        {.help = "faster: a layer that is not faster than its dense original goes back; always: it stays, and is marked",
         .choices = {"faster", "always"},
         .observable = "report"});
  f.add("keep_for", keep_for,
        {.help = "where it has to be faster", .example = "{batch: 128, phase: training}", .observable = "report"});
  f.add("modes", modes,
        {.help = "how channels are split, of a format that holds each side as several modes",
         .example = "{count: 3}",
         .observable = "report"});
  f.add("decomposition", decomposition,
        {.help = "when an iterative decomposition ends", .example = "{iterations: 10}", .observable = "bytes"});
  f.require(!rank_rules.empty() || ranks.kinds() == 1, "ranks", "is an empty list; needs a rule");
  const Format* const form = known_format();
  if (form == nullptr) return;  // reported as a wrong choice already
  for (const auto& [key, config] : rank_configs()) {
    const std::string problem = why_not_ranks_of(*form, *config);
    f.require(problem.empty(), key, problem);
  }
  f.require(!modes || form->with_modes(*modes) != nullptr, "modes", str(format, " does not split channels; leave it out"));
  f.require(form->sweeps() || !decomposition, "decomposition", str(format, " does not sweep over its factors; leave it out"));
}

void LayerRanks::fields(Fields& f) {
  f.add("path", path, {.help = "of the layer"});
  Value by_name = to_value(ranks);
  f.add("ranks", by_name, {.help = "by name"});
  ranks = ranks_from(by_name);
}

}  // namespace tessera

#include "compress/prune/config.h"

#include <algorithm>
#include <cmath>

#include "compress/patterns/n_m.h"
#include "core/nn/selector.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {

void TargetRule::fields(Fields& f) {
  f.add("layers", layers,
        {.help = "selector, or a list of selectors, of the pruned layers that this rule is for",
         .example = "'layer3.*'",
         .observable = "bytes",
         .required = true});
  f.add("target", target,
        {.help = "fraction of each of these layers' weights that is zero at the end; 0 leaves them as they are",
         .range = {.min = 0, .max = 1, .open_max = true},
         .example = "0.95",
         .observable = "bytes",
         .required = true});
  f.require(is_selector(layers), "layers", "needs a selector or a list of selectors");
}

void SparsityConfig::fields(Fields& f) {
  f.add("target", target,
        {.help = "fraction of the weights that is zero at the end",
         .range = {.min = 0, .max = 1, .open_min = true, .open_max = true},
         .example = "0.9",
         .observable = "bytes",
         .required = target == 0});
  f.add("targets", targets,
        {.help = "scope: layer; targets of some layers; the last that matches a layer holds for it",
         .example = "[{layers: 'layer3.*', target: 0.95}]",
         .observable = "bytes"});
  f.add("schedule", schedule,
        {.help = "how it rises: cubic (Zhu and Gupta), iterative (each pruning takes the same share of what is left), one_shot "
                 "(at begin)",
         .choices = {"cubic", "iterative", "one_shot"},
         .observable = "bytes"});
  f.add("begin", begin,
        {.help = "of the first pruning, from the stage's begin", .range = non_negative, .example = "1e", .observable = "bytes"});
  f.add("end", end,
        {.help = "of the last pruning; 75 % of the stage", .range = positive, .example = "80%", .observable = "bytes"});
  f.add("every", every,
        {.help = "distance between two prunings; 100 steps", .range = positive, .example = "50s", .observable = "bytes"});
  for (const auto& [key, given] : {std::pair("end", end.has_value()), std::pair("every", every.has_value())}) {
    f.require(schedule != "one_shot" || !given, key, "has no effect with schedule: one_shot, which prunes once, at begin");
  }
}

void SrSteConfig::fields(Fields& f) {
  f.add("lambda", lambda,
        {.help = "pull to 0 of weights that the mask hides", .range = non_negative, .example = "0.001", .observable = "bytes"});
  f.add("freeze", freeze,
        {.help = "of the mask, from the stage's begin: what it keeps then is kept for good",
         .range = positive,
         .example = "80%",
         .observable = "bytes"});
}

double SparsityConfig::largest_target() const {
  double largest = target;
  for (const TargetRule& rule : targets) largest = std::max(largest, rule.target);
  return largest;
}

// A pattern with a fixed sparsity leaves no choice of target, schedule and scope.
void PruneConfig::require_own(Fields& f, double own) const {
  f.require(std::abs(sparsity.target - own) < 1e-6, "sparsity.target",
            str("is ", shortest(sparsity.target), "; pattern: ", pattern.pattern, " has ", shortest(own), ", whatever is asked"));
  f.require(sparsity.targets.empty(), "sparsity.targets",
            str("has no effect with pattern: ", pattern.pattern, ", which has ", shortest(own), ", whatever is asked"));
  f.require(sparsity.schedule == "one_shot", "sparsity.schedule",
            str("is ", sparsity.schedule, "; pattern: ", pattern.pattern, " is one_shot, for its sparsity cannot rise"));
  f.require(scope == "layer", "scope", str("has no effect with pattern: ", pattern.pattern));
}

void PruneConfig::require_sr_ste(Fields& f) const {
  f.require(pattern.pattern == NOfMPattern::kName, "sr_ste", str("needs pattern: n_m; pattern: ", pattern.pattern));
  f.require(score == "magnitude", "score", str("is ", score, "; sr_ste keeps weights by magnitude"));
  f.require(sparsity.begin == Duration::percent(0), "sparsity.begin", "has no effect with sr_ste, which begins at once");
}

void PruneConfig::add_score(Fields& f) {
  f.add("score", score,
        {.help = "what weights are kept by: magnitude, taylor (what the loss loses without them, by gradients), or random as a "
                 "control",
         .choices = {"magnitude", "taylor", "random"},
         .observable = "bytes"});
  f.add("score_batches", score_batches,
        {.help = "score: taylor; training batches whose gradients make a score; 8",
         .range = at_least(1),
         .example = "32",
         .observable = "bytes"});
  f.require(!score_batches || score == "taylor", "score_batches", str("has no effect with score: ", score));
}

// The single elements of tile_element must leave room for tiles.
void PruneConfig::require_tiles(Fields& f) const {
  if (pattern.pattern != "tile_element") return;
  const double largest = sparsity.largest_target();
  f.require(pattern.extra_or_default() < 1 - largest, "extra",
            str(shortest(pattern.extra_or_default()), " of all weights as single elements leave no tile with ",
                largest > sparsity.target ? "a target of " : "sparsity.target ", shortest(largest)));
}

void PruneConfig::fields(Fields& f) {
  f.add("layers", layers,
        {.help = "selector of layers, or a list of selectors; all but the first convolution and the last linear layer",
         .example = "layer*.conv*",
         .observable = "bytes"});
  pattern.fields(f);
  f.add("scope", scope,
        {.help = "what is pruned to the target: each layer, all layers together (global), or all together with densities by the "
                 "layers' shapes (erk)",
         .choices = {"layer", "global", "erk"},
         .observable = "bytes"});
  add_score(f);
  f.add("sr_ste", sr_ste,
        {.help = "pattern: n_m; train dense weights through the mask that follows them (Zhou et al.), and freeze it later",
         .example = "{freeze: 80%}",
         .observable = "bytes"});
  const double own = pattern.own_sparsity();
  if (own > 0) {
    sparsity.target = own;
    sparsity.schedule = "one_shot";
  }
  f.add("sparsity", sparsity,
        {.help = "how much, and when; pattern: n_m needs none",
         .example = "{target: 0.9}",
         .observable = "bytes",
         .required = own == 0});
  f.require(!layers || is_selector(*layers), "layers", "needs a selector or a list of selectors");
  if (own > 0) require_own(f, own);
  if (sr_ste) require_sr_ste(f);
  f.require(sparsity.targets.empty() || scope == "layer", "sparsity.targets",
            str("needs scope: layer; scope: ", scope, " has one target for all layers together"));
  require_tiles(f);
}

}  // namespace tessera

#include "compress/prune/config.h"

#include "core/nn/selector.h"

namespace tessera {

void SparsityConfig::fields(Fields& f) {
  f.add("target", target,
        {.help = "fraction of the weights that is zero at the end",
         .range = {.min = 0, .max = 1, .open_min = true, .open_max = true},
         .example = "0.9",
         .observable = "bytes",
         .required = true});
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

void PruneConfig::fields(Fields& f) {
  f.add("layers", layers,
        {.help = "selector of layers, or a list of selectors; all but the first convolution and the last linear layer",
         .example = "layer*.conv*",
         .observable = "bytes"});
  f.add("scope", scope,
        {.help = "what is pruned to the target: each layer, all layers together (global), or all together with densities by the "
                 "layers' "
                 "shapes (erk)",
         .choices = {"layer", "global", "erk"},
         .observable = "bytes"});
  f.add("score", score,
        {.help = "what weights are kept by: magnitude, or random as a control",
         .choices = {"magnitude", "random"},
         .observable = "bytes"});
  f.add("sparsity", sparsity,
        {.help = "how much, and when", .example = "{target: 0.9}", .observable = "bytes", .required = true});
  f.require(!layers || is_selector(*layers), "layers", "needs a selector or a list of selectors");
}

}  // namespace tessera

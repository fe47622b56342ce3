#include "admm/config.h"

#include <algorithm>
#include <cmath>

namespace tessera {

void BalanceConfig::fields(Fields& f) {
  f.add("ratio", ratio,
        {.help = "rho changes where one residual is more than so many times the other",
         .range = {.min = 1, .open_min = true},
         .example = "5",
         .observable = "bytes"});
  f.add("factor", factor,
        {.help = "by which rho is multiplied or divided",
         .range = {.min = 1, .open_min = true},
         .example = "1.5",
         .observable = "bytes"});
}

void AdmmConfig::fields(Fields& f) {
  f.add(
      "sparsity", sparsity,
      {.help =
           "fraction of each weight that is to become zero; weights are held to their largest elements in place of low rank, and "
           "of the keys about low rank layers alone is given",
       .range = {.min = 0, .max = 1, .open_min = true, .open_max = true},
       .example = "0.9",
       .observable = "bytes"});
  sparsity ? layers_field(f) : LowRankConfig::fields(f);
  f.add("rho", rho,
        {.help = "how strongly weights are pulled to their copies: rho (W - Z + U) is added to the gradient",
         .range = positive,
         .example = "0.01",
         .observable = "bytes"});
  f.add("rho_end", rho_end,
        {.help = "rho at the stage's end, which it approaches by equal factors; without it rho stays",
         .range = positive,
         .example = "0.05",
         .observable = "bytes"});
  f.add("balance", balance,
        {.help = "raise or lower rho where the primal and the dual residual differ much",
         .example = "{ratio: 10, factor: 2}",
         .observable = "bytes"});
  f.add("update", update,
        {.help = "distance between two updates of the copies", .range = positive, .example = "200s", .observable = "bytes"});
  f.require(!rho_end || !balance, "balance", "cannot stand beside rho_end: rho follows a schedule or the residuals");
}

std::int64_t update_interval(const AdmmConfig& config, const StageLength& stage) {
  return std::max<std::int64_t>(1, config.update.resolve(stage.steps_per_epoch, stage.steps));
}

std::int64_t update_count(const AdmmConfig& config, const StageLength& stage) {
  return stage.steps / update_interval(config, stage);
}

// The steps after the second-to-last update train with rho_end.
double rho_after(const AdmmConfig& config, std::int64_t updates, const StageLength& stage) {
  const std::int64_t changes = update_count(config, stage) - 1;
  if (!config.rho_end || changes < 1) return config.rho;
  const double done = std::min(1.0, static_cast<double>(updates) / static_cast<double>(changes));
  return config.rho * std::pow(*config.rho_end / config.rho, done);
}

double rho_at(const AdmmConfig& config, std::int64_t step, const StageLength& stage) {
  return rho_after(config, step / update_interval(config, stage), stage);
}

}  // namespace tessera

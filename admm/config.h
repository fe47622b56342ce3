// The `admm` block of a stage.
#pragma once

#include <cstdint>
#include <optional>

#include "compress/low_rank.h"
#include "core/config/duration.h"
#include "core/config/fields.h"

namespace tessera {

// Residual balancing (Boyd et al. 2011, section 3.4.1): after an update whose primal residual is more than `ratio` times the
// dual residual, rho is multiplied by `factor`; where the dual residual is that much larger, rho is divided by it. The
// constraints are not convex here, and under a rho that is too small both residuals may stop falling. Where they do
// (Course::stalled), rho is multiplied, too, and never divided again.
struct BalanceConfig {
  double ratio = 10;
  double factor = 2;
  void fields(Fields& f);
};

struct AdmmConfig : LowRankConfig {
  // Fraction of each weight that is zero in its copy; without it copies are low-rank, and with it the members of LowRankConfig
  // but `layers` are not read.
  std::optional<double> sparsity;
  double rho = 1e-3;  // at the stage's begin
  std::optional<double> rho_end;  // at its end, by equal factors from update to update
  std::optional<BalanceConfig> balance;
  Duration update = Duration::epochs(1);  // between two projections
  void fields(Fields& f);
};

// How many updates a stage has, the first projection not counted, and how many steps apart.
std::int64_t update_interval(const AdmmConfig& config, const StageLength& stage);
std::int64_t update_count(const AdmmConfig& config, const StageLength& stage);
// rho after so many updates, or at a step, counted from 0, as the schedule says; what balancing does to it is not known
// beforehand.
double rho_after(const AdmmConfig& config, std::int64_t updates, const StageLength& stage);
double rho_at(const AdmmConfig& config, std::int64_t step, const StageLength& stage);

}  // namespace tessera

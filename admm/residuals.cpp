#include "admm/residuals.h"

#include <algorithm>

namespace tessera {
namespace {

using Place = std::vector<Residuals>::const_iterator;

double least(Place begin, Place end) { return std::ranges::min_element(begin, end, {}, &Residuals::relative)->relative; }

}  // namespace

void Residuals::fields(Fields& f) {
  f.add("step", step, {.help = "steps of the stage that were done"});
  f.add("rho", rho, {.help = "that these were taken with"});
  f.add("primal", primal, {.help = "norm of W - Z, over all layers"});
  f.add("dual", dual, {.help = "rho times the norm of the change of Z, over all layers"});
  f.add("relative", relative, {.help = "largest norm of W - Z over that of W"});
  f.add("layer", layer, {.help = "which has it"});
}

Course course_of(const std::vector<Residuals>& history) {
  if (history.empty()) return Course::falling;
  const Residuals& now = history.back();
  if (now.relative > kDiverged) return Course::diverged;
  if (history.size() <= kStallUpdates || now.relative <= kAgreement) return Course::falling;
  const auto lately = history.end() - kStallUpdates;
  const auto before = lately - std::min<std::ptrdiff_t>(kStallUpdates, lately - history.begin());
  return least(lately, history.end()) > 0.9 * least(before, lately) ? Course::stalled : Course::falling;
}

}  // namespace tessera

#include "admm/residuals.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {
namespace {

using Place = std::vector<Residuals>::const_iterator;

// Numbers that are none are written as texts.
double number(const Value& value) {
  if (!value.is_string()) return value.as_double();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return value.as_string() == "inf" ? kInfinity : value.as_string() == "-inf" ? -kInfinity : std::nan("");
}

double least(Place begin, Place end) { return std::ranges::min_element(begin, end, {}, &Residuals::relative)->relative; }

}  // namespace

Value Residuals::to_value() const {
  Value map = Value::map();
  map.set("step", step);
  map.set("rho", rho);
  map.set("primal", primal);
  map.set("dual", dual);
  map.set("relative", relative);
  map.set("layer", layer);
  return map;
}

Residuals residuals_from(const Value& value) {
  return {.step = value.at("step").as_int(),
          .rho = number(value.at("rho")),
          .primal = number(value.at("primal")),
          .dual = number(value.at("dual")),
          .relative = number(value.at("relative")),
          .layer = value.at("layer").as_string()};
}

Course course_of(const std::vector<Residuals>& history) {
  if (history.empty()) return Course::falling;
  const Residuals& now = history.back();
  if (!std::isfinite(now.primal) || !std::isfinite(now.dual) || now.relative > kDiverged) return Course::diverged;
  if (history.size() <= kStallUpdates || now.relative <= kAgreement) return Course::falling;
  const auto lately = history.end() - kStallUpdates;
  const auto before = lately - std::min<std::ptrdiff_t>(kStallUpdates, lately - history.begin());
  return least(lately, history.end()) > 0.9 * least(before, lately) ? Course::stalled : Course::falling;
}

}  // namespace tessera

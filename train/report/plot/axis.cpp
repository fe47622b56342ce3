#include "train/report/plot/axis.h"

#include <algorithm>
#include <cmath>

#include "core/support/text.h"

namespace tessera {
namespace {

constexpr double kGreatestPlace = 1e100;
constexpr double kSlack = 1e-6;  // share of a step, for the rounding error of the division by it
constexpr int kMostPowers = 8;  // most powers that an axis names

std::vector<Tick> power_ticks(const Axis& axis) {
  const int low = static_cast<int>(std::lround(std::log10(axis.low)));
  const int high = static_cast<int>(std::lround(std::log10(axis.high)));
  const int step = (high - low + kMostPowers - 1) / kMostPowers;
  std::vector<Tick> ticks;
  for (int power = low; power <= high; power += step) {
    for (const double multiple : {1.0, 2.0, 5.0}) {
      const double value = multiple * std::pow(10.0, power);
      if (multiple > 1 && (high - low > 2 || power == high)) continue;  // 2 and 5 times a power only where powers are few
      ticks.push_back({value, formatted("%.6g", value)});
    }
  }
  return ticks;
}

}  // namespace

bool has_place(double value) { return std::isfinite(value) && std::abs(value) <= kGreatestPlace; }

Axis Axis::over(double least, double greatest, double least_span, double padding) {
  const double span = std::max(greatest - least, least_span);
  const double raw = span / 5;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  Axis axis;
  for (const double multiple : {1.0, 2.0, 5.0, 10.0}) {
    axis.step = multiple * power;
    if (axis.step >= raw) break;
  }
  axis.low = std::floor((least - padding * span) / axis.step) * axis.step;
  axis.high = std::ceil((greatest + padding * span) / axis.step) * axis.step;
  if (!(axis.high > axis.low)) axis.high = axis.low + axis.step;
  return axis;
}

Axis Axis::between(double least, double greatest) {
  Axis axis = over(least, greatest, 1, 0);
  if (greatest > least) {
    axis.low = least;
    axis.high = greatest;
  }
  return axis;
}

Axis Axis::by_powers(double least, double greatest) {
  Axis axis{.logarithmic = true};
  axis.low = std::pow(10.0, std::floor(std::log10(least)));
  axis.high = std::pow(10.0, std::ceil(std::log10(greatest)));
  if (!(axis.high > axis.low * 1.5)) axis.high = axis.low * 10;
  return axis;
}

double Axis::share(double value) const {
  if (logarithmic) return (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  return (value - low) / (high - low);
}

std::vector<Tick> Axis::ticks() const {
  if (logarithmic) return power_ticks(*this);
  std::vector<Tick> ticks;
  const double first = std::ceil(low / step - kSlack), last = std::floor(high / step + kSlack);
  for (double i = first; i <= last; ++i) ticks.push_back({i * step, formatted("%.6g", i * step + 0.0)});  // + 0: no "-0"
  return ticks;
}

}  // namespace tessera

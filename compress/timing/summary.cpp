#include "compress/timing/summary.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

double quantile_of_sorted(const std::vector<double>& samples, double share) {
  const double at = share * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (at - std::floor(at)) * (samples[above] - samples[below]);
}

std::vector<double> logarithms(std::vector<double> ratios) {
  for (double& ratio : ratios) ratio = std::log(ratio);
  return ratios;
}

double log_binomial(double n, double k) { return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1); }

// How many of the smallest of n samples may be left out: the largest k with P(binomial(n, 1/2) < k) <= 0.025.
std::size_t outside_interval(std::size_t n) {
  const auto trials = static_cast<double>(n);
  double below = 0;
  for (std::size_t k = 0; k < n; ++k) {
    below += std::exp(log_binomial(trials, static_cast<double>(k)) - trials * std::log(2.0));
    if (below > 0.025) return k;
  }
  return 0;
}

}  // namespace

double quantile(std::vector<double> samples, double share) {
  std::sort(samples.begin(), samples.end());
  return quantile_of_sorted(samples, share);
}

Summary summarise(const std::vector<double>& samples) {
  return {quantile(samples, 0.5), quantile(samples, 0.1), quantile(samples, 0.9)};
}

Value to_value(const Summary& summary) {
  Value value = Value::map();
  value.set("median", summary.median);
  value.set("p10", summary.p10);
  value.set("p90", summary.p90);
  return value;
}

MedianInterval median_interval(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t outside = outside_interval(samples.size());
  const std::size_t low = outside > 0 ? outside - 1 : 0;
  return {quantile_of_sorted(samples, 0.5), samples[low], samples[samples.size() - 1 - low]};
}

double median_ratio(std::vector<double> ratios) { return std::exp(quantile(logarithms(std::move(ratios)), 0.5)); }

MedianInterval ratio_interval(std::vector<double> ratios) {
  const MedianInterval interval = median_interval(logarithms(std::move(ratios)));
  return {std::exp(interval.median), std::exp(interval.low), std::exp(interval.high)};
}

}  // namespace tessera

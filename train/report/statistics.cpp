#include "train/report/statistics.h"

#include <cmath>
#include <numbers>

#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

// Probability that |T| <= t for Student's t distribution.
double central_probability(double t, std::int64_t freedom) {
  const double theta = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double cosine = std::cos(theta);
  const bool odd = freedom % 2 == 1;
  if (freedom == 1) return 2 * theta / std::numbers::pi;
  double term = odd ? cosine : 1;
  double sum = term;
  for (std::int64_t k = odd ? 3 : 2; k < freedom; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (theta + std::sin(theta) * sum) : std::sin(theta) * sum;
}

}  // namespace

std::string spread_text(const Summary& summary, std::optional<double> of_medians) {
  return str(formatted("%.2f", summary.median), " (", formatted("%.2f", summary.p10), '-', formatted("%.2f", summary.p90),
             of_medians ? str("; ", formatted("%.2f", *of_medians)) : "", ')');
}

std::string far_from_alone(std::span<const TimedAlone> all) {
  std::string text;
  for (const TimedAlone& one : all) {
    if (one.alone <= 0) continue;
    const double ratio = one.in_turn / one.alone;
    if (std::abs(ratio - 1) > kFarFromAlone) text += str(text.empty() ? "" : ", ", one.name, ' ', formatted("%.2f", ratio));
  }
  if (text.empty()) return text;
  return str("Times in turn that are more than ", formatted("%.0f", 100 * kFarFromAlone),
             " % from the network's time alone, as time in turn over time alone: ", text, '.');
}

double mean_of(std::span<const double> samples) {
  double sum = 0;
  for (const double sample : samples) sum += sample;
  return samples.empty() ? 0.0 : sum / static_cast<double>(samples.size());
}

double sample_stddev(std::span<const double> samples) {
  if (samples.size() < 2) return 0.0;
  const double mean = mean_of(samples);
  double sum = 0;
  for (const double sample : samples) sum += (sample - mean) * (sample - mean);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

std::optional<double> reported_deviation(std::span<const double> samples) {
  return samples.size() < kRunsForDeviation ? std::nullopt : std::optional(sample_stddev(samples));
}

std::string deviation_field(std::span<const double> samples) {
  const std::optional<double> deviation = reported_deviation(samples);
  return deviation ? formatted("%.6f", *deviation) : "";
}

std::string mean_text(const Metric& metric, std::span<const double> values) {
  if (values.empty()) return "-";
  const std::optional<double> deviation = reported_deviation(values);
  return str(cell_of(metric, mean_of(values), 2), deviation ? str(" ± ", cell_of(metric, *deviation, 2)) : "");
}

double student_t975(std::int64_t freedom) {
  TESSERA_CHECK(freedom >= 1, ShapeError, "student_t975: degrees of freedom are ", freedom, "; need at least 1");
  double low = 1.9;
  double high = 13;  // 12.706 for one degree of freedom
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (central_probability(middle, freedom) < 0.95 ? low : high) = middle;
  }
  return (low + high) / 2;
}

MeanInterval mean_interval(std::span<const double> samples) {
  const auto n = static_cast<std::int64_t>(samples.size());
  const double mean = mean_of(samples);
  if (n < 2) return {.n = n, .mean = mean};
  const double half = student_t975(n - 1) * sample_stddev(samples) / std::sqrt(static_cast<double>(n));
  return {.n = n, .mean = mean, .low = mean - half, .high = mean + half};
}

Verdict verdict_of(const MeanInterval& difference) {
  if (difference.low > 0) return Verdict::higher;
  return difference.high < 0 ? Verdict::lower : Verdict::undecided;
}

std::string_view verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::higher: return "higher";
    case Verdict::lower: return "lower";
    case Verdict::undecided: break;
  }
  return "undecided";
}

}  // namespace tessera

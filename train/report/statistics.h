// Means, deviations and intervals, for the figures of a few seeds.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compress/timing/summary.h"
#include "train/tasks/metric.h"

namespace tessera {

double mean_of(std::span<const double> samples);  // 0 of none
double sample_stddev(std::span<const double> samples);  // 0 of fewer than two

// A deviation is reported for three runs or more: two values say next to nothing about how far runs lie apart.
inline constexpr std::size_t kRunsForDeviation = 3;
std::optional<double> reported_deviation(std::span<const double> samples);  // that of the sample; empty of fewer runs
std::string deviation_field(std::span<const double> samples);  // of a CSV file: "0.001234", or "" of fewer runs
// "93.28 ± 0.04" in the metric's unit, the mean alone of fewer runs, "-" of none.
std::string mean_text(const Metric& metric, std::span<const double> values);

// "2.00 (1.50-3.00)": the median, with p10 and p90. With `of_medians`, that ratio last: "2.00 (1.50-3.00; 1.95)".
std::string spread_text(const Summary& summary, std::optional<double> of_medians = {});

// A network's time among others in turn, and alone.
struct TimedAlone {
  std::string name;
  double in_turn = 0;
  double alone = 0;  // 0: not known
};
// A sentence that names those whose two times are more than kFarFromAlone apart; "" where there is none.
std::string far_from_alone(std::span<const TimedAlone> all);
inline constexpr double kFarFromAlone = 0.1;

// Quantile 0.975 of Student's t distribution, by its closed form for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and
// 26.7.4). `freedom` is at least 1.
double student_t975(std::int64_t freedom);

// A mean with its 95 % interval, mean +- t sd / sqrt(n).
struct MeanInterval {
  std::int64_t n = 0;
  double mean = 0;
  double low = -std::numeric_limits<double>::infinity();  // as it stays for fewer than two samples
  double high = std::numeric_limits<double>::infinity();
  bool is_bounded() const { return std::isfinite(low); }
};
MeanInterval mean_interval(std::span<const double> samples);

enum class Verdict { higher, lower, undecided };
Verdict verdict_of(const MeanInterval& difference);  // undecided where the interval holds zero
std::string_view verdict_word(Verdict verdict);  // "higher", "lower", "undecided"

}  // namespace tessera

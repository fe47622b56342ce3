// Order statistics of repeated measurements.
#pragma once

#include <vector>

#include "core/config/value.h"

namespace tessera {

struct Summary {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

// Linear interpolation between order statistics, as numpy.quantile. `samples` must not be empty.
double quantile(std::vector<double> samples, double share);
Summary summarise(const std::vector<double>& samples);
Value to_value(const Summary& summary);

struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;
};

// Computed on logarithms, so that a ratio and its inverse weigh the same: the median of 2 and 1/2 is 1. Ratios are above 0.
double median_ratio(std::vector<double> ratios);

// The median with its 95 % confidence interval, from order statistics: whatever the samples' distribution, the number of them
// below the true median is binomial(n, 1/2) (David and Nagaraja, Order Statistics, 3rd ed., 7.1). With fewer than 6
// samples the interval spans the extremes, which cover less than 95 %. `samples` must not be empty.
MedianInterval median_interval(std::vector<double> samples);
MedianInterval ratio_interval(std::vector<double> ratios);  // the same, of ratios by their logarithms

}  // namespace tessera

#include "compress/ranks/evbmf.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace tessera {
namespace {

constexpr double kLeastVariance = 1e-16;  // of the largest variance: a matrix of exactly low rank has no noise

// Sizes as in the paper: L rows (the smaller size) and M columns, L <= M, alpha = L / M.
class FreeEnergy {
 public:
  FreeEnergy(std::vector<double> squares, std::int64_t rows, std::int64_t columns)
      : squares_(std::move(squares)),
        rows_(static_cast<double>(std::min(rows, columns))),
        columns_(static_cast<double>(std::max(rows, columns))),
        alpha_(rows_ / columns_) {
    const double tau = 2.5129 * std::sqrt(alpha_);
    threshold_ = (1 + tau) * (1 + alpha_ / tau);
  }

  // Twice the free energy at the optimal factors, without the terms that do not depend on the variance.
  double operator()(double variance) const {
    double sum = (rows_ - static_cast<double>(squares_.size())) * std::log(variance);
    for (const double square : squares_) {
      const double x = square / (columns_ * variance);
      sum += x - std::log(x);
      if (x > threshold_) sum += gain(x);
    }
    return sum;
  }

  std::int64_t above_threshold(double variance) const {
    return std::ranges::count_if(squares_, [&](double square) { return square > columns_ * variance * threshold_; });
  }

  // The bounds of the variance.
  double highest() const { return sum_from(0) / (rows_ * columns_); }
  double lowest() const {
    const double next = std::min(std::ceil(rows_ / (1 + alpha_)), rows_) - 1;
    const auto first = static_cast<std::size_t>(next);
    const double square = first < squares_.size() ? squares_[first] : 0;
    const double mean = sum_from(first) / (rows_ - next);
    return std::max({square / (columns_ * threshold_), mean / columns_, kLeastVariance * highest()});
  }

 private:
  // The change of the energy if a component is kept. It is negative.
  double gain(double x) const {
    const double b = x - (1 + alpha_);
    const double tau = (b + std::sqrt(b * b - 4 * alpha_)) / 2;
    return -tau + std::log(tau + 1) + alpha_ * std::log(tau / alpha_ + 1);
  }

  double sum_from(std::size_t first) const {
    double sum = 0;
    for (std::size_t i = first; i < squares_.size(); ++i) sum += squares_[i];
    return sum;
  }

  std::vector<double> squares_;  // squares of the singular values above zero, descending
  double rows_, columns_, alpha_, threshold_;
};

// The energy has a kink wherever a component crosses the threshold, and may have several minima. The best point of a geometric
// grid is refined between its neighbours.
double best_variance(const FreeEnergy& energy, double low, double high) {
  constexpr int kGrid = 400;
  const double step = std::log(high / low) / kGrid;
  int best = 0;
  double least = energy(low);
  for (int i = 1; i <= kGrid; ++i) {
    const double value = energy(low * std::exp(step * i));
    if (value < least) least = value, best = i;
  }
  double left = low * std::exp(step * std::max(0, best - 1)), right = low * std::exp(step * std::min(kGrid, best + 1));
  constexpr double kPart = 1 / std::numbers::phi;
  while (right - left > 1e-10 * right) {
    const double width = kPart * (right - left);
    if (energy(right - width) < energy(left + width)) {
      right = left + width;
    } else {
      left = right - width;
    }
  }
  return (left + right) / 2;
}

}  // namespace

std::int64_t evbmf_rank(std::span<const double> singular_values, std::int64_t rows, std::int64_t columns) {
  std::vector<double> squares;
  for (const double s : singular_values) {
    if (s > 0) squares.push_back(s * s);
  }
  if (squares.empty()) return 0;
  const FreeEnergy energy(std::move(squares), rows, columns);
  const double low = energy.lowest(), high = energy.highest();
  return energy.above_threshold(low < high ? best_variance(energy, low, high) : high);
}

}  // namespace tessera

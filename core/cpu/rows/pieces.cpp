#include "core/cpu/rows/pieces.h"

#include <array>
#include <cmath>
#include <numbers>

#include "core/ops/gelu_math.h"

namespace tessera::cpu::rows {
namespace {

using Terms = std::array<double, Pieces::kTerms>;

// Coefficients, by ascending power, of the polynomial through f(x[i]) = y[i], by Newton's divided differences.
Terms interpolated(const Terms& x, Terms y) {
  for (std::size_t order = 1; order < x.size(); ++order) {
    for (std::size_t i = x.size() - 1; i >= order; --i) y[i] = (y[i] - y[i - 1]) / (x[i] - x[i - order]);
  }
  Terms powers{};
  for (std::size_t i = x.size(); i-- > 0;) {  // powers = powers (t - x[i]) + y[i]
    for (std::size_t k = powers.size() - 1; k > 0; --k) powers[k] = powers[k - 1] - x[i] * powers[k];
    powers[0] = y[i] - x[i] * powers[0];
  }
  return powers;
}

// The tails at -a, computed directly so that they keep all their digits.
double normal_at(double a) { return 0.5 * std::erfc(a / std::numbers::sqrt2); }
double normal_slope_at(double a) { return normal_at(a) - a * kInvSqrtTwoPi * std::exp(-0.5 * a * a); }
double logistic_at(double a) { return 1 / (1 + std::exp(2 * kSqrtTwoOverPi * a * (1 + kGeluCubic * a * a))); }
double logistic_slope_at(double a) {
  const double s = logistic_at(a);
  return s - a * s * (1 - s) * 2 * kSqrtTwoOverPi * (1 + 3 * kGeluCubic * a * a);
}

}  // namespace

Pieces::Pieces(double (*function)(double), double pieces_scale)
    : scale(static_cast<float>(pieces_scale)), end(static_cast<float>((kCount - 0.51) / pieces_scale)) {
  Terms nodes{}, values{};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i] = 0.5 * std::cos((2.0 * static_cast<double>(i) + 1) * std::numbers::pi / (2.0 * kTerms));
  }
  for (int piece = 0; piece < kCount; ++piece) {
    for (std::size_t i = 0; i < nodes.size(); ++i) values[i] = function((piece + nodes[i]) / pieces_scale);
    const Terms powers = interpolated(nodes, values);
    for (std::size_t k = 0; k < powers.size(); ++k) terms[k][piece] = static_cast<float>(powers[k]);
  }
}

const GeluPieces& gelu_pieces() {
  static const GeluPieces pieces{{normal_at, 3.25}, {normal_slope_at, 3.25}, {logistic_at, 3.9}, {logistic_slope_at, 3.9}};
  return pieces;
}

}  // namespace tessera::cpu::rows

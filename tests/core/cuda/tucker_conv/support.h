// A Tucker-2 convolution as plain loops in double, and the shapes that its tests share.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "bench/tdc_shapes.h"
#include "core/compute_type.h"
#include "core/cuda/tucker_conv/plan.h"
#include "tests/support/gpu_limits.h"

namespace tessera::cuda {

using bench::kTdcCores;

// A Tucker-2 layer around a core of TDC's: twice as many channels outside as a rank has.
inline TuckerConvShape tdc(const bench::TdcCore& core) {
  return {.images = 1, .h = core.size, .w = core.size, .in = 2 * core.in, .rank_in = core.in, .rank_out = core.out,
          .out = 2 * core.out};
}

using Numbers = std::vector<double>;

// One convolution: images of rows.image x columns.image x in, weights [out, kh, kw, in].
struct PlainConv {
  int images;
  CoreAxis rows, columns;
  int in, out;
  Numbers forward(const Numbers& x, const Numbers& weight) const;
  Numbers backward_input(const Numbers& grad_y, const Numbers& weight) const;
  Numbers backward_weight(const Numbers& x, const Numbers& grad_y) const;

 private:
  template <class Tap>
  void for_each_tap(const Tap& tap) const;
};

// Everything about one Tucker-2 convolution on random numbers. Without a factor, its weights are empty.
struct Problem {
  TuckerConvShape conv;
  Numbers x, in_factor, core, out_factor, bias, grad_y;
  Numbers narrow_in, narrow_out, y;                        // of the forward
  Numbers grad_narrow_out, grad_narrow_in, grad_x;         // of the backward
  Numbers grad_in_factor, grad_core, grad_out_factor, grad_bias;
};
// Numbers are multiples of 1/16 below 1 in magnitude: exact in every type.
Problem random_problem(const TuckerConvShape& conv);

template <class T>
std::vector<T> as(const Numbers& numbers) {
  std::vector<T> result;
  for (const double number : numbers) result.push_back(narrow<T>(static_cast<float>(number)));
  return result;
}

template <class T>
std::vector<T> unwritten(std::size_t size) {
  return std::vector<T>(size, narrow<T>(std::numeric_limits<float>::quiet_NaN()));
}

// Largest |actual - expected| over max |expected|; infinite where a number is NaN.
template <class T>
double error_of(const std::vector<T>& actual, const Numbers& expected) {
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  double scale = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(widen(actual[i])) - expected[i]);
    if (!(difference < 1e30)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
    scale = std::max(scale, std::abs(expected[i]));
  }
  return largest / scale;
}

}  // namespace tessera::cuda

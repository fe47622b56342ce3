// A function of one number in pieces: polynomials of degree 5 on intervals of one width, interpolated in double at Chebyshev's
// nodes of each. A vector looks the terms of its elements' intervals up in registers.
#pragma once

namespace tessera::cpu::rows {

// 16 intervals of width 1 / scale, centred on the multiples 0, 1, ... 15 of that width.
struct Pieces {
  static constexpr int kCount = 16, kTerms = 6;

  Pieces(double (*function)(double), double pieces_scale);

  float scale;
  float end;  // from here on it says nothing: 15.49 intervals, so that rounding finds none behind the last
  alignas(64) float terms[kTerms][kCount];  // by power of what a * scale is from the nearest integer, and by that integer
};

// The normal distribution at -a and the derivative of gelu at -a, and their counterparts in the tanh form
// (core/ops/gelu_math.h). The errors are below 3e-6 of the function, and below 3e-6 in the derivatives.
struct GeluPieces {
  Pieces erf, erf_slope, tanh, tanh_slope;
};
const GeluPieces& gelu_pieces();

}  // namespace tessera::cpu::rows

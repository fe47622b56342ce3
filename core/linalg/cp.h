// CP decomposition: a tensor as a sum of r outer products, X[i, j, ...] ~ sum_c A_0[i, c] A_1[j, c] ... (Carroll & Chang,
// Psychometrika 1970; Kolda & Bader, SIAM Review 2009, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace tessera::linalg {

struct Cp {
  std::vector<Tensor> factors;  // [n_mode, r] of each mode; every column's norm is the same in all of them
};

struct CpOptions {
  std::int64_t max_iterations = 100;
  double tolerance = 1e-4;  // stops when a sweep lowers the relative error by less
};

// Proximal alternating least squares in double on the host: each factor in turn minimises ||X - X~||^2 + mu ||A - A_before||^2,
// mu = 1e-9 of the mean squared column norm of the others' product, so that the residual does not rise where columns become
// dependent (Navasca, De Lathauwer & Kindermann, EUSIPCO 2008). It begins from `start`, or from the leading singular vectors of
// each unfolding, with normal numbers of a fixed seed where r is larger than their number, and the last factor fitted to them.
// tensor [n_0, ...] f32 or f64 of two modes or more, any device; factors are on the host in its dtype. Throws ShapeError on an
// empty tensor, a rank below 1, or a start of other shapes; NumericError on NaN or Inf.
Cp cp_als(const Tensor& tensor, std::int64_t rank, const CpOptions& options = {}, const Cp* start = nullptr);

Tensor reconstruct(const Cp& cp);  // on the factors' device

}  // namespace tessera::linalg

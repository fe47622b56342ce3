// Tucker decomposition over any subset of a tensor's modes, in double on the tensor's device:
// X ~ core x_m0 U_m0 x_m1 U_m1 ..., U_m [n_m, r_m] with orthonormal columns, core = X x_m U_m' (Kolda & Bader, SIAM Review 2009,
// section 4). So ||X - X~||^2 = ||X||^2 - ||core||^2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace tessera::linalg {

struct Tucker {
  Tensor core;                  // X's shape with n_m replaced by r_m
  std::vector<Tensor> factors;  // [n_m, r_m], one for each of `modes`
  std::vector<int> modes;       // distinct, in the order asked for
};

struct HooiOptions {
  std::int64_t max_iterations = 100;
  double tolerance = 1e-4;  // stops when a sweep lowers the relative error by less
};

// Sequentially truncated higher-order SVD (Vannieuwenhoven, Vandebril & Meerbergen, SISC 2012): each mode's leading
// singular vectors come from the tensor that earlier modes have already shrunk. error^2 <= sum over modes of the discarded
// squared singular values of X's own unfoldings <= d * best. tensor: f32 or f64, factors and core in its dtype.
// Throws ShapeError on an empty tensor, repeated modes, modes or ranks out of range (named with mode, size and legal range).
Tucker st_hosvd(const Tensor& tensor, std::span<const int> modes, std::span<const std::int64_t> ranks);

// Higher-order orthogonal iteration (De Lathauwer, De Moor & Vandewalle, SIMAX 2000) from st_hosvd; never worse than its start.
Tucker hooi(const Tensor& tensor, std::span<const int> modes, std::span<const std::int64_t> ranks,
            const HooiOptions& options = {});

Tensor reconstruct(const Tucker& tucker);

// The n_mode singular values of the unfolding along a mode, descending, with zeros where it has fewer columns than rows.
// A wide unfolding goes through the eigenvalues of its Gram matrix, so values below 1e-8 of the largest are noise.
std::vector<double> mode_spectrum(const Tensor& tensor, int mode);

}  // namespace tessera::linalg

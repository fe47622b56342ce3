// Tensor-train decomposition: X[i_1, ..., i_d] ~ G_1[i_1] G_2[i_2] ... G_d[i_d], a product of matrices G_k[i_k] of size r_(k-1) x
// r_k with r_0 = r_d = 1 (Oseledets, SISC 2011). The ranks r_1, ..., r_(d-1) are those of the unfoldings [n_1 ... n_k, n_(k+1)
// ... n_d].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace tessera::linalg {

struct TensorTrain {
  std::vector<Tensor> cores;  // [r_(k-1), n_k, r_k]
};

// TT-SVD (Oseledets 2011, algorithm 1) at given ranks, in double on the tensor's device; the cores are on the host, in its dtype,
// and have equal Frobenius norms. ||X - X~||^2 <= the sum over k of the squared singular values of the k-th unfolding beyond r_k
// <= (d - 1) times the best. tensor: f32 or f64 of two modes or more. Throws ShapeError on an empty tensor, on a number of ranks
// other than d - 1, and on a rank outside of 1..min(r_(k-1) n_k, n_(k+1) ... n_d); NumericError on NaN or Inf.
TensorTrain tt_svd(const Tensor& tensor, std::span<const std::int64_t> ranks);

// The same at the smallest ranks for which ||X - X~|| <= error ||X||: each cut discards at most error^2 / (d - 1) of ||X||^2.
TensorTrain tt_svd(const Tensor& tensor, double error);

Tensor reconstruct(const TensorTrain& train);

// Rounding (Oseledets 2011, algorithm 2): the train of lower ranks near X that tt_svd would find, without X. Orthogonalises from
// right to left by QR, then truncates from left to right by SVD, in double on the host; the cores are on the host, in the train's
// dtype and of equal norms. A rank that is above the train's own, or above what orthogonalisation leaves of it, changes nothing:
// ranks never grow. ||X - X~||^2 is bounded as by tt_svd. Throws ShapeError on cores that are no train, on a number of ranks
// other than d - 1 and on a rank below 1; NumericError on NaN or Inf.
TensorTrain tt_round(const TensorTrain& train, std::span<const std::int64_t> ranks);

// The same at the smallest ranks for which ||X - X~|| <= error ||X||. error: in [0, 1). At 0 what double cannot tell from 0 may
// stay.
TensorTrain tt_round(const TensorTrain& train, double error);

// The singular values of each of the d - 1 unfoldings, descending, as many as its smaller side.
std::vector<std::vector<double>> tt_spectra(const Tensor& tensor);

}  // namespace tessera::linalg

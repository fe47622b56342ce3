// The products of multilinear algebra in double. Private to core/linalg, and to what core/cuda has of it.
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

// Matrices [m, k] and [k, n], f32 or f64, any strides, on one device -> f64 [m, n]. Throws NumericError on NaN or Inf.
Tensor multiply_f64(const Tensor& left, const Tensor& right);

// x x' of x [n, rest], f64 [n, n]: on the CPU its lower triangle, which is what eigh reads, with zeros above. Throws the same.
Tensor gram_f64(const Tensor& x);

// The Euclidean norms of x and of x - y, f64 of one shape. From a GPU they are read back.
double norm_f64(const Tensor& x);
double distance_f64(const Tensor& x, const Tensor& y);

}  // namespace tessera::linalg

namespace tessera::cpu {
Tensor multiply_f64(const Tensor& left, const Tensor& right);
Tensor gram_f64(const Tensor& x);
double norm_f64(const Tensor& x);
double distance_f64(const Tensor& x, const Tensor& y);
}  // namespace tessera::cpu
namespace tessera::cuda {
Tensor multiply_f64(const Tensor& left, const Tensor& right);
Tensor gram_f64(const Tensor& x);
double norm_f64(const Tensor& x);
double distance_f64(const Tensor& x, const Tensor& y);
}  // namespace tessera::cuda

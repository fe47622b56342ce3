// Factorisations of many small matrices at once by cuSOLVER; those of one matrix are called through core/linalg.
#pragma once

#include "core/linalg/eigh.h"
#include "core/linalg/svd.h"

namespace tessera::cuda {

// Rows and columns up to which matrices of a batch are factorised together.
inline constexpr std::int64_t kMostBatchedSvd = 32;

// a [batch, m, n], f32 or f64, m and n up to kMostBatchedSvd -> u [batch, m, k], s [batch, k], v [batch, n, k], each as
// linalg::svd gives them. Computed in double; waits for the device. Throws what linalg::svd throws.
linalg::Svd svd_batch(const Tensor& a);

// a [batch, n, n] -> values [batch, n], vectors [batch, n, n], each as linalg::eigh gives them. Computed in double; waits.
linalg::Eigh eigh_batch(const Tensor& a);

}  // namespace tessera::cuda

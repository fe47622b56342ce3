// Our randomised SVD beside scikit-learn's, of one square f32 matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rivals/sklearn_rival.h"
#include "core/tensor.h"

namespace tessera::bench {

struct SvdCase {
  std::int64_t size, rank;
  std::string spectrum;  // "flat": normal numbers, whose singular values lie close; "power": singular value k is 1 / k
};
Tensor make_matrix(const SvdCase& of);

// Throws NumericError where our error is above `kErrorShare` times the rival's. The line: op (randomised_svd), size, rank,
// spectrum, rounds; tessera and rival as {name, ms, error}, errors relative in the Frobenius norm; ratio (rival / tessera);
// equal_work and equal_work_ratio, of the rival with our oversampling and power iterations; sklearn, its environment.
inline constexpr double kErrorShare = 1.01;
Value measure_svd(const SvdCase& of, const SklearnProgram& program, std::int64_t rounds);

}  // namespace tessera::bench

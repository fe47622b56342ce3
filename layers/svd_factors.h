// A matrix W [out, in] held as out_factor [out, r] in_factor [r, in]: the best approximation of rank r in the Frobenius norm
// (Eckart & Young, Psychometrika 1936) is U_r S_r V_r'. Each factor takes sqrt(S_r) of it.
#pragma once

#include "core/tensor.h"
#include "layers/ranks.h"

namespace tessera {

struct SvdFactors {
  Tensor out_factor;  // [out, r]
  Tensor in_factor;   // [r, in]
};

// weight [out, in], f32 or f64, computed in double on its device; the factors are on the host, in its dtype. `randomised`: by the
// first singular vectors alone, approximately (core/linalg/randomised_svd.h). Throws NumericError on NaN or Inf.
SvdFactors svd_project(const Tensor& weight, std::int64_t rank, bool randomised = false);
Tensor svd_compose(const SvdFactors& factors);  // [out, in]

// 1 <= rank <= min(out, in).
std::vector<RankProblem> svd_rank_problems(std::int64_t out, std::int64_t in, std::int64_t rank);

}  // namespace tessera

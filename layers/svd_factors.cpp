#include "layers/svd_factors.h"

#include <algorithm>
#include <cmath>

#include "core/linalg/mode_product.h"
#include "core/linalg/randomised_svd.h"
#include "core/linalg/svd.h"
#include "core/support/error.h"

namespace tessera {

SvdFactors svd_project(const Tensor& weight, std::int64_t rank, bool randomised) {
  const Tensor exact = weight.to(DType::f64);
  const linalg::Svd svd = randomised ? linalg::randomised_svd(exact, rank) : linalg::svd(exact);
  const Tensor s = svd.s.to(Device::cpu());
  const auto factor = [&](const Tensor& vectors) {  // the first `rank` columns times sqrt(s)
    Tensor kept = vectors.to(Device::cpu()).slice(1, 0, rank).contiguous().clone();
    double* const data = kept.data<double>();
    for (std::int64_t i = 0; i < kept.numel(); ++i) data[i] *= std::sqrt(s.data<double>()[i % rank]);
    return kept;
  };
  return {.out_factor = factor(svd.u).to(weight.dtype()),
          .in_factor = factor(svd.v).permute({1, 0}).contiguous().to(weight.dtype())};
}

Tensor svd_compose(const SvdFactors& factors) { return linalg::mode_product(factors.in_factor, factors.out_factor, 0); }

std::vector<RankProblem> svd_rank_problems(std::int64_t out, std::int64_t in, std::int64_t rank) {
  const std::int64_t largest = std::min(out, in);
  if (rank >= 1 && rank <= largest) return {};
  return {{"rank", str("rank is ", rank, ", the weight is ", out, " x ", in, "; legal range is 1..", largest)}};
}

}  // namespace tessera

// Empirical variational Bayesian matrix factorisation: how many singular values of a matrix stand out of its noise, whose
// variance is estimated too (Nakajima, Sugiyama, Babacan & Tomioka, "Global analytic solution of fully-observed variational
// Bayesian matrix factorization", JMLR 14, 2013, theorem 2 and corollary 1). Kim et al. (ICLR 2016) take it for unfoldings of
// convolutions.
#pragma once

#include <cstdint>
#include <span>

namespace tessera {

// The rank of a matrix of `rows` x `columns`, in either order, with these singular values, descending; values that are missing
// are zero. From 0, where all of it is noise, to the number of values above zero, but of L <= M sizes at most ceil(L / (1 + L /
// M)) - 1 where all are above zero: the variance is that of what is left. It is found on a grid and then by golden section, to
// 1e-10 of itself.
std::int64_t evbmf_rank(std::span<const double> singular_values, std::int64_t rows, std::int64_t columns);

}  // namespace tessera

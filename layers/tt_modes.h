// What layers in tensor-train form share (core/linalg/tt.h): modes, and what ranks between them can be.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/shape.h"
#include "layers/ranks.h"

namespace tessera {

using Modes = std::vector<std::int64_t>;

constexpr std::size_t kMostConvModes = 3;  // of each side of a convolution's train
constexpr std::size_t kMostPairs = 4;  // of a train over pairs of them, o_k i_k

Shape shape_of(std::span<const std::int64_t> sizes);
std::string to_text(std::span<const std::int64_t> modes);  // "4·8·4"

// `count` factors of `size`, as equal as its divisors allow, ascending: 128 in three is 4·4·8. Sizes that no
// memory holds are not split: 1·...·1·size.
Modes balanced_modes(std::int64_t size, std::int64_t count);

// `count` factors, ascending, each at most one below the largest, of the smallest product that is at least `size`: 257 in two is
// 16·17, which is 272.
Modes padded_modes(std::int64_t size, std::int64_t count);

// What is wrong with the modes of `out` outputs and `in` inputs for a tensor train over o_1 i_1, ..., o_d i_d; "" where they
// fit.
std::string pairs_problem(const Modes& out_modes, std::int64_t out, const Modes& in_modes, std::int64_t in);

// The same of a table's rows and width. The rows' modes may multiply to more than there are rows, up to twice as many.
std::string table_problem(const Modes& row_modes, std::int64_t rows, const Modes& width_modes, std::int64_t width);

// r_1, r_2, ... by name, "r1", "r2", and their values.
Ranks tt_ranks(std::span<const std::int64_t> values);
std::vector<std::int64_t> values_of(const Ranks& ranks);

// Between modes n_1, ..., n_d: min(n_1 ... n_k, n_(k+1) ... n_d) for each k.
std::vector<std::int64_t> largest_tt_ranks(std::span<const std::int64_t> modes);
// d - 1 ranks, judged together: 1 <= r_k, r_k <= r_(k-1) n_k and r_k <= n_(k+1) r_(k+1), with r_0 = r_d = 1.
std::vector<RankProblem> tt_rank_problems(std::span<const std::int64_t> modes, const Ranks& ranks);
// Lowered to ones that go together.
Ranks legal_tt_ranks(std::span<const std::int64_t> modes, Ranks ranks);

}  // namespace tessera

// What weights are kept by.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compress/prune/targets.h"

namespace tessera {

// |w|, f32 on the CPU, contiguous.
Tensor magnitudes(const Tensor& weight);

// Of each weight, f32 on the CPU, contiguous, in its shape; -1 where it is masked. magnitude: |w|. random: uniform numbers of
// (seed, path), the same at every pruning.
std::vector<Tensor> scores_of(const std::string& score, std::span<const PrunedWeight> weights, std::uint64_t seed);

}  // namespace tessera

// The scores by which weights are kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compress/prune/loss_gradients.h"
#include "compress/prune/targets.h"

namespace tessera {

// |w|, f32 on the CPU, contiguous.
Tensor magnitudes(const Tensor& weight);

// What scores are made of beside the weights.
struct ScoreSources {
  std::uint64_t seed = 0;  // random
  LossGradients gradients = {};  // taylor
  std::int64_t first = 0, batches = 8;  // taylor: of the training batches
};

// The scores of each weight: f32 on the CPU, contiguous, in its shape; -1 where it is masked. magnitude: |w|. random: uniform
// numbers of (seed, path), the same at every pruning. taylor: (g w)^2, g the gradient of a batch's mean loss, summed over
// batches (Molchanov et al., CVPR 2019, equation 8, of single weights), as a share of the largest of all weights. Throws
// NumericError where every batch's gradients overflowed.
std::vector<Tensor> scores_of(const std::string& score, std::span<const PrunedWeight> weights, const ScoreSources& sources);

}  // namespace tessera

// A layer in sparse kernels beside the dense layers that compute the same function: ours, and oneDNN called directly.
#pragma once

#include "bench/cases/factored_cases.h"
#include "compress/patterns/config.h"

namespace tessera::bench {

struct SparseCase {
  PatternConfig pattern;
  double density;  // of the weights
  LayerShape shape;
};

// "unstructured", "block 16x16", "tile 64".
std::string name_of(const PatternConfig& pattern);

// u8: the largest magnitudes that the pattern may keep, `density` of them, or as many whole units as fit.
Tensor pattern_mask(const PatternConfig& pattern, double density, const Tensor& weight);

// Random values, of which the pattern keeps the largest. Layers without bias.
LayerPair sparse_pair(const SparseCase& of);

// Pattern, density as it was reached, shape, phase (forward, which is inference, or training), weights (constant or changing).
Value describe_sparse(const SparseCase& of, const LayerPair& pair, Phase phase);

// measure_pair() with peak_share: what the sparse layer reaches of `peak_gflops` on the multiply-adds that are left.
Value measure_sparse(const SparseCase& of, const LayerPair& pair, Phase phase, const TurnOptions& turns, double peak_gflops);

}  // namespace tessera::bench

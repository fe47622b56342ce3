// A layer in sparse kernels beside the dense layers that compute the same function: ours, and oneDNN called directly.
#pragma once

#include <string>
#include <vector>

#include "bench/cases/factored_cases.h"
#include "compress/patterns/config.h"

namespace tessera::bench {

// The weights of which the pattern keeps the largest. If they are independent, every row keeps about as many. Rows and columns of
// a trained layer are uneven.
enum class Magnitudes { independent, trained };

struct SparseCase {
  PatternConfig pattern;
  double density;  // of the weights
  LayerShape shape;
  Magnitudes magnitudes = Magnitudes::independent;
  DType compute = DType::f32;  // f32, bf16
  Tensor weight = {};  // a trained layer's own, [out, in]; undefined: drawn
};

std::string name_of(const PatternConfig& pattern);  // "unstructured", "block 16x16", "tile 64"
std::string name_of(const SparseCase& of);  // the same, or "unstructured, trained rows"
std::string row_of(const SparseCase& of);  // "tile 64 of 512x1024 -> 1024", "..., bf16"

// What is asked on a processor without fast bf16 units; 0 where nothing is.
struct SparseTarget {
  SparseCase of;
  double forward = 0, training = 0;  // dense / sparse
  double share = 0;  // of the multiply-add peak, on what is left, in inference
  // The same of the passes of training, each alone: the forward and the gradient of x, the gradient of the values.
  double product_share = 0, sums_share = 0;

  bool trains() const { return training > 0 || product_share > 0 || share == 0; }  // else it is a row of inference only
};
std::vector<SparseTarget> sparse_targets();
std::vector<SparseTarget> avx2_targets();  // for a run whose sides are held back to AVX2

// Trained rows from `weight`, [out, in], whatever its size, instead of drawn ones.
void take_weight(std::vector<SparseTarget>& targets, const Tensor& weight);

// u8: the largest magnitudes that the pattern may keep, `density` of them, or as many whole units as fit.
Tensor pattern_mask(const PatternConfig& pattern, double density, const Tensor& weight);

// Weights pruned to the largest by the pattern, and the dense layer of these. Layers without bias.
LayerPair sparse_pair(const SparseCase& of);

// format (name_of), density as it was reached, row_kept (elements of a row: median, p10, p90), shape, precision, phase (forward,
// which is inference, or training), weights (constant or changing).
Value describe_sparse(const SparseCase& of, const LayerPair& pair, Phase phase);

// measure_pair() with peak_share: what the sparse layer reaches of `peak_gflops` on the multiply-adds that are left. The parts of
// training are its passes ("forward", "gradient of x", "gradient of values"), with a peak_share each.
// Sets target, share_target, and of parts share_target, where the target has them.
Value measure_sparse(const SparseTarget& target, const LayerPair& pair, Phase phase, const TurnOptions& turns,
                     double peak_gflops);

}  // namespace tessera::bench

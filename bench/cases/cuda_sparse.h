// Products with a sparse weight on a GPU: our ops against cuSPARSE, and beside them against cuBLASLt's dense products.
#pragma once

#include <string>
#include <vector>

#include "bench/cases/factored_cases.h"
#include "bench/device_rotation.h"
#include "compress/patterns/config.h"
#include "core/device/decisions.h"

namespace tessera::bench {

struct SparseProductCase {
  PatternConfig pattern;
  double density;  // of the weights
  LinearShape shape;
};
std::string to_string(const SparseProductCase& of);  // "1024x768 -> 3072, tile 64, density 0.25"

// Squares of 512 to 8192, single weights, as Sputnik is timed (Gale et al., SC 2020, "Sparse GPU kernels for deep learning");
// the pointwise convolutions of MobileNetV1 over one image of 224x224; blocks; and tiles in BERT-base's layers over 12800 tokens,
// as Guo et al. time them (SC 2020, "Accelerating sparse DNN models without hardware-support via tile-wise sparsity"), and over
// 1024. The largest come last.
std::vector<SparseProductCase> cuda_sparse_cases();

// u8 [out, in] on the CPU: of random weights the largest that the pattern may keep.
Tensor sparse_mask(const SparseProductCase& of);
double density_of(const Tensor& mask);

// `precision`: f32 (without tf32), bf16 or f16. Values and their gradient are f32 on our side, as in training; cuSPARSE reads
// them rounded. Further ways of ours: the dense one. Each of the sets has an index of its own.
RotatedCase cuda_sparse_case(ConvPass pass, const SparseProductCase& of, const Tensor& mask, const std::string& precision,
                             Device device);

// The way of ours that is to be forced, where the ops offer it: "pieces" of rows that share columns for blocks and tiles, else
// "sparse".
std::string way_of(const PatternConfig& pattern);

// Which way the ops took since the scope began: the one that it forces, or what the clock chose, "not decided" where they offered
// no choice.
std::string execution_of(const DecisionScope& decisions, const std::string& forced);

}  // namespace tessera::bench

// Our matrix product beside PyTorch's of the same matrices.
#pragma once

#include <filesystem>

#include "bench/cases/library_cases.h"
#include "bench/dense_shapes.h"

namespace tessera::bench {

// Writes product.safetensors, as op_bench_torch.py reads it: a [m, k] and b [k, n].
void write_matrices(const ProductShape& shape, const std::filesystem::path& directory);

// Times both under a DecisionScope of its own, PyTorch in its fastest way: how it is called, ATen's instruction set, what waiting
// threads do, malloc, one thread. Both read b anew in every call. Throws NumericError when they compute different things,
// TorchMissing without torch.
// The line: op, shape, pass, library ("PyTorch"), what compare_with_modes() sets, gflops, decisions.
Value measure_torch_product(const ProductShape& shape, const LibraryOptions& options);

// Throws TorchMissing where the interpreter has no torch.
void check_torch_product(const LibraryOptions& options);

}  // namespace tessera::bench

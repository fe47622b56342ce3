// Our product with a sparse matrix beside PyTorch's of the same matrix in CSR form.
#pragma once

#include <vector>

#include "bench/cases/library_cases.h"
#include "bench/cases/sparse_cases.h"

namespace tessera::bench {

struct SparseTorchTarget {
  SparseCase of;
  double least;  // PyTorch's time over ours, of inference
  std::string row() const;  // "unstructured of 1024x1024 -> 1024 against PyTorch's CSR"
};
std::vector<SparseTorchTarget> sparse_torch_targets();

// Writes product.safetensors, as sparse_bench_torch.py reads it: x, and the weight with its zeros.
void write_product(const LayerPair& pair, const std::filesystem::path& directory);

// Times both under a DecisionScope of its own, with constant weights, PyTorch in its fastest way: how it is called, ATen's
// instruction set, what waiting threads do, malloc; its dense product stands beside. Throws NumericError when they compute
// different things, TorchMissing without torch.
// The line: describe_sparse(), library ("PyTorch CSR"), target, what compare_with_modes() sets, decisions.
Value measure_against_torch(const SparseTorchTarget& target, const LibraryOptions& options);

// Throws TorchMissing where the interpreter has no torch.
void check_torch(const LibraryOptions& options);

}  // namespace tessera::bench

// A forward and backward of attention over one causal sequence: against the multiply-add peak, PyTorch's, and with a sparse
// pattern against our own dense one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/cases/library_cases.h"
#include "core/ops/attention_pattern.h"

namespace tessera::bench {

// Band and density of Gale et al.'s pattern for the sparse Transformer ("Sparse GPU kernels for deep learning", 2020), at other
// sequence lengths.
inline constexpr std::int64_t kBand = 256;
inline constexpr double kDensity = 0.05;  // beside the band

struct AttentionCase {
  std::int64_t positions;
  std::int64_t block = 0;  // of a sparse pattern: 1 of single pairs; 0: dense
  double least = 0;  // ratio to dense attention; 0 where none is set
  std::int64_t heads = 8, width = 64;
};
std::string format_of(const AttentionCase& of);  // "dense", "elements", "blocks of 16"
std::string row_of(const AttentionCase& of);  // "dense attention of 1x4096, 8 heads of 64"
std::vector<AttentionCase> attention_cases();

// Operands, and a step over them whose result is the gradient of q.
class AttentionWorkload {
 public:
  explicit AttentionWorkload(const AttentionCase& of);

  Contestant step() const;
  double flops() const;  // of seven products of the pairs that are seen: two of the forward, five of the backward
  std::int64_t bytes() const;  // the most that a step has beside its operands
  // attention.safetensors, as attention_bench_torch.py reads it: q, k, v and grad_y, [1, positions, heads, width] each.
  void write_inputs(const std::filesystem::path& directory) const;
  Value describe() const;  // format, shape, phase, memory_bytes; of a pattern band, density and pattern_bytes

 private:
  AttentionCase of_;
  Var q_, k_, v_;
  Tensor grad_y_;
  AttentionPatternPtr pattern_;
};

// The line: describe(), rounds, tessera_ms, gflops, peak_share, fma_peak_gflops, and ratio, which is the share of the peak in
// each round.
Value measure_attention(const AttentionCase& of, const TurnOptions& turns, double peak_gflops);

// The line: describe(), rounds, tessera_ms, rival {name, ms}, ratio (of dense attention's time), pair_ratio (of the pairs that
// either sees), gflops, peak_share, fma_peak_gflops, dense_memory_bytes; target.
Value measure_sparse_attention(const AttentionCase& of, const TurnOptions& turns, double peak_gflops);

// Dense attention beside PyTorch's, in its fastest way. The line: describe(), library ("PyTorch"), what compare_with_modes()
// sets. Throws NumericError when they compute different things, TorchMissing without torch.
Value measure_torch_attention(const AttentionCase& of, const LibraryOptions& options);
void check_torch_attention(const LibraryOptions& options);  // throws TorchMissing where the interpreter has no torch

}  // namespace tessera::bench

// A factored layer beside a Python library's: TensorLy-Torch's of the same factors, or, where its form is another, of factors
// that take no fewer multiply-adds; an svd beside two linear layers of PyTorch's.
#pragma once

#include <filesystem>
#include <vector>

#include "bench/arguments.h"
#include "bench/cases/factored_cases.h"
#include "bench/rivals/modes_rival.h"

namespace tessera::bench {

struct LibraryCase {
  FactoredCase of;
  // TensorLy-Torch's train of a convolution is over in, height, width, out; its three ranks. Ours is over parts of out, the
  // window and parts of in. Empty: its layer has our factors.
  std::vector<std::int64_t> train = {};
};
std::string_view library_of(const LibraryCase& of);  // "TensorLy-Torch"; of an svd "PyTorch"

struct LibraryTarget {
  LibraryCase of;
  double least;  // ratio, of either phase
};
// Linear trains, convolutions of ranks 64, an svd. Our train of a convolution has no fewer parameters and multiply-adds than
// TensorLy-Torch's, and as few more as its ranks allow.
std::vector<LibraryTarget> library_targets();

class LibraryWorkload {
 public:
  LibraryWorkload(const LibraryCase& of, Phase phase);

  // layer.json and layer.safetensors, as factored_bench_torch.py reads them.
  void write_inputs(const std::filesystem::path& directory) const;

  // Every 97th value of what the library is to compute: y, or in training the gradient of x.
  std::vector<float> values() const;
  // Milliseconds of `count` inferences of our layer, or forwards and backwards.
  std::vector<double> run(std::int64_t count) const;

  // Format, shape, ranks, phase, weights; library and its ranks; parameters and macs (for a sample: an image, a row) of either.
  Value describe() const;

 private:
  LibraryCase of_;
  Phase phase_;
  FactoredSides sides_;
  std::shared_ptr<Module> known_;  // computes what the library is to
  std::vector<std::pair<std::string, Tensor>> factors_;
};

struct LibraryOptions {
  TorchOptions torch;
  int threads = 2;
  std::int64_t rounds = 30;
};
TorchProgram program_of(const LibraryOptions& options, const std::filesystem::path& inputs);

// Times both under a DecisionScope of its own, in inference with constant weights. The library runs in its fastest way:
// implementation, compilation, memory layout, ATen's instruction set, what waiting threads do, malloc, one thread. Throws
// NumericError when they compute different things, TorchMissing without the library.
// The line: describe(), rounds, sweep_runs, tessera_ms, torch_ms, ratio (torch_ms / tessera_ms), torch_settings, torch_finalists,
// torch_sweep, torch, value_difference, torch_matmul_gflops, fma_peak_gflops, fma_peak_threads, decisions.
Value measure_library(const LibraryCase& of, Phase phase, const LibraryOptions& options);

// Throws TorchMissing where the interpreter has not all that a rival needs.
void check_library(const LibraryOptions& options);

}  // namespace tessera::bench

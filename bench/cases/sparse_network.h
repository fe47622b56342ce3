// Whole networks whose convolutions of one kernel size are sparse, beside the dense networks that they come from: ours, each
// layer in its fastest way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compress/patterns/config.h"
#include "compress/timing/timed_at.h"
#include "core/config/value.h"
#include "core/nn/module.h"

namespace tessera::bench {

struct SparseNetwork {
  std::string model;  // colour images of 224x224, 1000 classes
  std::int64_t batch;
  Phase phase;  // inference with folded norms and constant weights; or a training step, the optimiser's included
  std::int64_t kernel;  // of the square, ungrouped convolutions that are sparse
  PatternConfig pattern;  // of random scores
  double density;
  double target;  // least ratio
};

// Those whose text, like "unstructured 1x1 of mobilenet_v1 32x224x224x3 inference", contains `only`.
std::vector<SparseNetwork> sparse_networks(const std::string& only);

struct KeptWeights {
  std::int64_t layers = 0, elements = 0, of = 0;
  double density() const { return static_cast<double>(elements) / static_cast<double>(of); }
};
// Masks of random scores on the layers that are to be sparse, which zero what they do not keep; the layers stay dense.
KeptWeights mask_layers(Module& network, const SparseNetwork& of);
// The same masks, and the layers in sparse kernels.
void make_sparse(std::unique_ptr<Module>& network, const SparseNetwork& of);

// Prints and gives the line: format, density (of the sparse layers' weights), shape, phase, weights (constant or changing),
// layers (sparse ones), rounds; factored (the sparse network) and rival, as {name, ms}; ratio (rival / factored), target,
// agreement (the difference of logits, or of the first losses, from the dense network of the same weights, of the largest),
// decisions. Throws NumericError where the two compute different things.
Value measure_sparse_network(const SparseNetwork& of, std::int64_t rounds);

}  // namespace tessera::bench

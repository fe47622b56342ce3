// What layers see, for decompositions that keep a layer's answers rather than its weight: with C = E[x x'] over a layer's input
// channels, the error of the answers of W~ is ||(W - W~) C^(1/2)||, so that W C^(1/2) is decomposed and C^(-1/2) goes into the
// factor next to the inputs (a whitened decomposition, as for linear layers in Wang et al., ICLR 2025, section 3).
// A convolution's channels are taken pixel by pixel: correlations between pixels are not seen.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "compress/training_batches.h"
#include "core/nn/module.h"

namespace tessera {

struct InputWeights {
  Tensor root, inverse;  // f64 [in, in] on the host: C^(1/2) and C^(-1/2), symmetric
};

// By path. C comes from `count` training batches in inference mode. 1e-4 trace(C) / in is added to its eigenvalues, so that it
// has an inverse even if channels are always 0 or follow from others. A layer that sees nothing but zeros has no entry. Throws
// NumericError naming the layer on inputs that are NaN or Inf.
std::map<std::string, InputWeights> input_weights(Module& root, std::span<const std::string> paths,
                                                  const TrainingBatches& batches, std::int64_t count);

}  // namespace tessera

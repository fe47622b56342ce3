// Accuracy and loss over a whole split: every sample once, weighted exactly.
#pragma once

#include <cstdint>

#include "core/module.h"

namespace tessera {

class Loader;

struct Evaluation {
  std::int64_t samples = 0;
  std::int64_t correct = 0;
  double loss = 0;  // mean cross-entropy per sample, without label smoothing
  double accuracy() const { return samples > 0 ? static_cast<double>(correct) / static_cast<double>(samples) : 0.0; }
};

// Runs the model in inference mode, without recording, over one epoch of the loader.
Evaluation evaluate(Module& model, Loader& loader);

}  // namespace tessera

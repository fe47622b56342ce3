// Batch-norm statistics measured anew. A pass that replaces weights leaves running statistics behind that were measured on the
// activations of the weights before.
#pragma once

#include <cstdint>

#include "compress/training_batches.h"
#include "core/nn/module.h"

namespace tessera {

// Sets the running mean and variance of every BatchNorm to the mean of its batches' over `count` training batches (the precise
// statistics of Wu & Johnson, 2021, "Rethinking 'Batch' in BatchNorm", section 3). A batch norm whose momentum is 0 keeps its
// own. Nothing else changes. Returns whether there was one to set. Throws NumericError naming the batch norm on statistics that
// are NaN or Inf.
bool recalibrate(Module& root, const TrainingBatches& batches, std::int64_t count);

}  // namespace tessera

// Choices of a clock for programs that read none: tessera predict and the C interface take those that a network's file holds.
#pragma once

#include <cstdint>
#include <span>

#include "core/nn/module.h"
#include "train/run/network_file.h"

namespace tessera {

// Adds to `use.decisions` what is fastest in inference with batches of these sizes, of the network with its batch norms folded
// (layers/fold.h), on this processor and for as many compute threads as there are now. Choices that are there already stay.
// `input` is that of one sample. Throws ConfigError where the CPU does not compute in use.precision, NumericError on weights that
// are NaN or Inf.
void add_inference_choices(NetworkUse& use, const Module& model, const Shape& input, std::span<const std::int64_t> batches);

}  // namespace tessera

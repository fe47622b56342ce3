// Runs a pass over a model: rewrites, verifies, times and reports.
#pragma once

#include <memory>

#include "compress/pass.h"
#include "compress/timing/veto.h"
#include "core/nn/module.h"

namespace tessera {

// `input` is a probe batch shape. A replacement goes in only after its weights are all finite (NumericError) and its output
// shape for the layer's own input equals the old one's (InternalError, as for the whole model at the end). A network that takes
// the model's place is checked in the same way, its output shape only at the end. Everything that a pass throws passes through;
// layers rewritten before stay rewritten. With a veto replacements are timed, each alone and then together, and go back as it
// says; without one all of them stay, untimed. `batches` are what the pass may see of the training data, and what batch norms are
// recalibrated on where it asks for that and a layer was replaced.
PassReport run_pass(std::unique_ptr<Module>& root, Pass& pass, const Shape& input, const Veto* veto = nullptr,
                    const TrainingBatches* batches = nullptr);

}  // namespace tessera

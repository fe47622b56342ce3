// Runs a pass over a model: rewrites, verifies, times and reports.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compress/pass.h"
#include "compress/timing/veto.h"
#include "core/nn/hook.h"
#include "core/nn/module.h"

namespace tessera {

struct PassReport {
  std::string pass;
  std::vector<LayerReport> layers;  // matched layers, in tree order
  Cost before;  // of the whole network
  Cost after;
  std::optional<Speed> speed = {};  // of the network after the pass, over the network before it
  std::string timed_at = {};        // "batch 32, inference, 2 threads"; empty where it was not timed
  std::vector<ModelChange> changes;  // parameters of replaced layers, for Hook::on_model_changed
  void fields(Fields& f);  // what a report shows: all but the changes
};

// `input` is a probe batch shape. A replacement goes in only after its weights are all finite (NumericError) and its output
// shape for the layer's own input equals the old one's (InternalError, as for the whole model at the end). Everything that a
// pass throws passes through; layers rewritten before stay rewritten. With a veto replacements are timed, each alone and then
// together, and go back as it says; without one all of them stay, untimed.
PassReport run_pass(std::unique_ptr<Module>& root, Pass& pass, const Shape& input, const Veto* veto = nullptr);

}  // namespace tessera

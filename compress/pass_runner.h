// Runs a pass over a model: rewrites, verifies, times and reports.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compress/pass.h"
#include "core/hook.h"
#include "core/module.h"

namespace tessera {

struct PassReport {
  std::string pass;
  std::vector<LayerReport> layers;  // matched layers, in tree order
  Cost before;  // of the whole network
  Cost after;
  std::vector<ModelChange> changes;  // parameters of replaced layers, for Hook::on_model_changed
  void fields(Fields& f);  // what a report shows: all but the changes
};

// `input` is a probe batch shape. A replacement goes in only after its weights are all finite (NumericError) and its output
// shape for the layer's own input equals the old one's (InternalError, as for the whole model at the end). Everything that a
// pass throws passes through; layers rewritten before stay rewritten.
PassReport run_pass(std::unique_ptr<Module>& root, Pass& pass, const Shape& input);

}  // namespace tessera

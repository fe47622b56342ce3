// What a pass did to a layer and to the network: the one description from which layers.csv, JSON and
// checkpoints are written, and report.md from its values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/ranks/latency_outcome.h"
#include "compress/timing/speed.h"
#include "core/config/fields.h"
#include "core/nn/cost.h"
#include "layers/ranks.h"

namespace tessera {

// The decision about a layer that was left as it was. Any other word is Pass::done() of the pass that changed it: "factored".
inline constexpr const char* kDense = "dense";

// One row of layers.csv. The runner fills paths, kinds, parameters, MACs and times; the pass fills the rest.
struct LayerReport {
  std::string path;
  std::string kind_before;
  std::string kind_after;
  std::string format;  // name of the compressed form
  std::string ranks_asked;  // as the experiment file says it: "macs 0.4", "out 32 in 64"
  std::optional<Ranks> ranks;  // reached; empty when the layer stays dense
  double relative_error = 0;  // of the weight, Frobenius norm
  std::int64_t parameters_before = 0;
  std::int64_t parameters_after = 0;
  std::int64_t macs_before = 0;  // per sample
  std::int64_t macs_after = 0;
  std::string phase = {};  // in which the speed was timed: "inference"; empty where it was not timed
  std::optional<Speed> speed = {};  // as timed where `keep_for` says
  std::optional<double> network_share = {};  // dense time of the layer over that of the network before the pass
  std::string decision = kDense;
  std::string reason;  // why the layer stays dense, or that it is kept and not faster; else empty. No figure of a clock
  double seconds = 0;  // spent in rewrite

  bool stays_dense() const { return decision == kDense; }
  void stay_dense(std::string why);  // the layer as it was
  void fields(Fields& f);  // all but the seconds, which no two runs share
};

struct PassReport {
  std::string pass;
  std::vector<LayerReport> layers;  // matched layers, in tree order
  Cost before;  // of the whole network
  Cost after;
  std::optional<Speed> speed = {};  // of the network after the pass, over the network before it
  std::int64_t recalibrated = 0;  // training batches that batch norms were measured anew on; 0: they were not
  std::optional<LatencyOutcome> latency = {};  // where ranks were chosen by it
  std::string timed_at = {};  // "batch 32, inference, 2 threads"; empty where it was not timed
  std::vector<PhaseSpeed> other_phases = {};  // of a transformer, told beside the phase that decides
  void fields(Fields& f);
};

}  // namespace tessera

// A rewrite of a module tree, layer by layer. The runner (pass_runner.h) calls it, verifies what it returns and reports.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compress/timing/speed.h"
#include "core/config/fields.h"
#include "core/nn/module.h"
#include "layers/tucker2_conv2d.h"

namespace tessera {

enum class Decision { dense, factored };

constexpr std::string_view name_of(Decision decision) { return decision == Decision::factored ? "factored" : "dense"; }

// One row of layers.csv. The runner fills paths, kinds, parameters and MACs; the pass fills the rest.
struct LayerReport {
  std::string path;
  std::string kind_before;
  std::string kind_after;
  std::string format;                  // "tucker2"
  std::string ranks_asked;             // as the experiment file says it: "macs 0.4", "out 32 in 64"
  std::optional<Tucker2Ranks> ranks;   // reached; empty when the layer stays dense
  double relative_error = 0;           // of the weight, Frobenius norm
  std::int64_t parameters_before = 0;
  std::int64_t parameters_after = 0;
  std::int64_t macs_before = 0;        // per sample
  std::int64_t macs_after = 0;
  Decision decision = Decision::dense;
  std::string reason;                  // why the layer stays dense, or that it is factored and not faster; else empty
  std::optional<Speed> speed = {};     // as timed at the report's batch and phase
  std::optional<double> network_share = {};  // dense time of the layer over that of the network before the pass
  double seconds = 0;                  // spent in rewrite
  void stay_dense(std::string why);    // the layer as it was
  void fields(Fields& f);              // all but the seconds, which no two runs share
};

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;
  // Sees the whole model before any layer is rewritten: decisions that span layers. `input` has a batch dimension.
  virtual void prepare(Module& root, const Shape& input) = 0;
  // After prepare: whether rewrite wants to see this layer. Layers that match and stay dense are reported with their reason.
  virtual bool matches(const std::string& path, const Module& module) const = 0;
  // The layer that takes the module's place, or null to leave it. The module stays in its tree meanwhile, so that a throwing
  // rewrite leaves the model whole. Fills format, ranks, error, decision and reason of its row.
  virtual std::unique_ptr<Module> rewrite(const Module& module, LayerReport& report) const = 0;
};

}  // namespace tessera

// A rewrite of a module tree, layer by layer or as a whole. The runner (pass_runner.h) calls it, verifies what it returns and
// reports.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "compress/layer_report.h"
#include "compress/ranks/block_problem.h"
#include "compress/ranks/rank_select.h"
#include "compress/timing/veto.h"
#include "compress/training_batches.h"
#include "core/nn/module.h"

namespace tessera {

// What a pass may ask beside the model. Null where there is none, as for plans: what depends on it is then left out.
struct PassMeans {
  const TrainingBatches* batches = nullptr;
  const Veto* veto = nullptr;  // its clock
};

struct RuleComparison {
  std::vector<std::string> layers;
  std::vector<RuleChoice> rules;
  void fields(Fields& f);
};

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;  // of its block in an experiment file: "factorise"
  // What became of a layer that it rewrites, in one word for reports: "factored".
  virtual std::string_view done() const = 0;
  // Sees the whole model before any layer is rewritten: decisions that span layers. `input` has a batch dimension. Leaves the
  // model as it was. Returns all that is wrong; nothing when the pass is prepared.
  virtual std::vector<BlockProblem> try_prepare(std::unique_ptr<Module>& root, const Shape& input,
                                                const PassMeans& means = {}) = 0;
  // Throws ConfigError with one line per problem.
  void prepare(std::unique_ptr<Module>& root, const Shape& input, const PassMeans& means = {});
  // After prepare: whether rewrite wants to see this layer. Layers that match and stay dense are reported with their reason.
  virtual bool matches(const std::string& path, const Module& module) const = 0;
  // The layer that takes the module's place, or null to leave it. The module stays in its tree meanwhile, so that a throwing
  // rewrite leaves the model whole. Fills format, ranks, error and reason of its row; a reason holds no figure of a clock, so
  // that equal runs give equal ones. The runner sets the decision.
  virtual std::unique_ptr<Module> rewrite(const Module& module, LayerReport& report) const = 0;
  // Where layers change together: the network that takes the model's place, or null to leave it. Adds a row for each layer that
  // it has something to report on: path, format, ranks, decision and reason. Called before any layer is rewritten.
  virtual std::unique_ptr<Module> rewrite_network(Module& root, std::vector<LayerReport>& rows) const;
  // What it found for the whole network, once the layers are in their places.
  virtual void complete(PassReport&) const {}
  // What usual rules would choose for the layers whose ranks come from their spectra; after prepare without a veto, as plans do.
  virtual RuleComparison compare_rules() const { return {}; }
  // The keys of its block that ask for training batches.
  virtual std::vector<std::string> data_keys() const { return {}; }
  // Training batches on which batch-norm statistics are measured anew once the layers are in their places; 0: they stay.
  virtual std::int64_t recalibration() const { return 0; }
};

}  // namespace tessera

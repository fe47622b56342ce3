// A rewrite of a module tree, layer by layer. The runner (pass_runner.h) calls it, verifies what it returns and reports.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "compress/layer_report.h"
#include "compress/ranks/block_problem.h"
#include "compress/training_batches.h"
#include "core/nn/module.h"

namespace tessera {

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;  // of its block in an experiment file: "factorise"
  // What became of a layer that it rewrites, in one word for reports: "factored".
  virtual std::string_view done() const = 0;
  // Sees the whole model before any layer is rewritten: decisions that span layers. `input` has a batch dimension. All that is
  // wrong; none when the pass is prepared.
  // `batches` are null where there is no data, as for plans: what depends on them is then left out.
  virtual std::vector<BlockProblem> try_prepare(Module& root, const Shape& input, const TrainingBatches* batches = nullptr) = 0;
  // Throws ConfigError with one line per problem.
  void prepare(Module& root, const Shape& input, const TrainingBatches* batches = nullptr);
  // After prepare: whether rewrite wants to see this layer. Layers that match and stay dense are reported with their reason.
  virtual bool matches(const std::string& path, const Module& module) const = 0;
  // The layer that takes the module's place, or null to leave it. The module stays in its tree meanwhile, so that a throwing
  // rewrite leaves the model whole. Fills format, ranks, error and reason of its row; a reason holds no figure of a clock, so
  // that equal runs give equal ones. The runner sets the decision.
  virtual std::unique_ptr<Module> rewrite(const Module& module, LayerReport& report) const = 0;
  // The keys of its block that ask for training batches.
  virtual std::vector<std::string> data_keys() const { return {}; }
  // Training batches on which batch-norm statistics are measured anew once the layers are in their places; 0: they stay.
  virtual std::int64_t recalibration() const { return 0; }
};

}  // namespace tessera

// The passes that a stage asks for: made and run here, for runs, checks, plans, benchmarks and dry runs alike.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "train/experiment.h"
#include "train/run/stage_results.h"

namespace tessera {

struct StagePass {
  std::string key;  // of its block in the stage: "factorise"
  std::unique_ptr<Pass> pass;
  // What its layers have to be; dtype, device and rounds of the timing are the caller's. Empty where an earlier stage has
  // decided.
  std::optional<VetoOptions> veto;
  bool may_leave_dense = false;  // layers, because a clock found them not faster, here or in an earlier stage
  bool settles = false;  // rewrites a copy of the network, and leaves the layers and ranks of that as the stage's result
};

bool has_passes(const StageConfig& stage);

// What the stage has a clock decide, by the key of its block; what an earlier stage decides is that stage's.
std::vector<std::pair<std::string, VetoOptions>> stage_vetoes(const StageConfig& stage, const ReportConfig& report);

// Whether the layers that the stage leaves compressed, or their ranks, depend on the clock.
bool clock_decides(const StageConfig& stage);

// In the order in which they run, before the stage trains. The veto's batch is the report's largest where the stage names none,
// and 1 in decode. `results` are those of the stages before.
std::vector<StagePass> stage_passes(const StageConfig& stage, const ReportConfig& report, const StageResults& results = {},
                                    Values values = Values::decomposed);

// run_pass() of the model, or of a copy of it where the pass settles something for the stage, which then joins `results`.
PassReport run_stage_pass(StagePass& pass, const StageConfig& stage, std::unique_ptr<Module>& model, const Shape& input,
                          StageResults& results, const Veto* veto = nullptr, const TrainingBatches* batches = nullptr);

// The phases, beside the one that decides, in which a pass reports a network's speed: inference at the report's largest batch,
// decode at 1, and training, with a batch.
std::vector<TimedBatch> other_phases(Phase decides, const ReportConfig& report, std::optional<std::int64_t> training_batch);

// Why a veto could not time a network, which reads `input`, in its block's phase and length; by keys. The network stays.
std::vector<BlockProblem> timing_problems(const VetoOptions& veto, Module& network, const Shape& input);

// Gives the model what a training stage would leave for later passes, for callers that do not train: masks of its pruning's
// target, by the weights as they are, or of rigl's sparsity.
void assume_trained(const StageConfig& stage, Module& model);

// Writes the batches that stage_passes() would take from the report into the stage.
void settle_passes(StageConfig& stage, const ReportConfig& report);

}  // namespace tessera

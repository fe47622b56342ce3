// The passes that a stage asks for: made here, for runs, checks, plans, benchmarks and dry runs alike.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "train/experiment.h"

namespace tessera {

struct StagePass {
  std::string key;  // of its block in the stage: "factorise"
  std::unique_ptr<Pass> pass;
  VetoOptions veto;  // what its layers have to be; dtype, device and rounds of the timing are the caller's
};

bool has_passes(const StageConfig& stage);

// In the order in which they run, before the stage trains. The veto's batch is the report's largest where the stage names none.
std::vector<StagePass> stage_passes(const StageConfig& stage, const ReportConfig& report, Values values = Values::decomposed);

// Writes the batches that stage_passes() would take from the report into the stage.
void settle_passes(StageConfig& stage, const ReportConfig& report);

}  // namespace tessera

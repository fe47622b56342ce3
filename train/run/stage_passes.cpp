#include "train/run/stage_passes.h"

#include <algorithm>

#include "layers/fold.h"

namespace tessera {
namespace {

VetoOptions veto_options(const std::string& keep, const KeepForConfig& keep_for, const StageConfig& stage,
                         const ReportConfig& report) {
  const std::int64_t largest = report.latency.batch.empty() ? 1 : std::ranges::max(report.latency.batch);
  return {.only_faster = keep == "faster",
          .batch = keep_for.batch.value_or(largest),
          .timing = {.phase = keep_for.phase == "training" ? Phase::training : Phase::inference,
                     .recompute = stage.training.recompute,
                     .folded = for_inference}};
}

}  // namespace

bool has_passes(const StageConfig& stage) { return stage.factorise.has_value(); }

std::vector<StagePass> stage_passes(const StageConfig& stage, const ReportConfig& report, Values values) {
  std::vector<StagePass> passes;
  if (stage.factorise) {
    const FactoriseConfig& config = *stage.factorise;
    passes.push_back({"factorise", std::make_unique<FactorisePass>(config, values),
                      veto_options(config.keep, config.keep_for, stage, report)});
  }
  return passes;
}

void settle_passes(StageConfig& stage, const ReportConfig& report) {
  if (stage.factorise) {
    FactoriseConfig& config = *stage.factorise;
    config.keep_for.batch = veto_options(config.keep, config.keep_for, stage, report).batch;
  }
}

}  // namespace tessera

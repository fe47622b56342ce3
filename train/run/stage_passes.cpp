#include "train/run/stage_passes.h"

#include <algorithm>

#include "admm/admm_pass.h"
#include "compress/prune/prune.h"
#include "core/support/error.h"
#include "layers/decoding.h"
#include "layers/fold.h"
#include "train/run/model_state.h"

namespace tessera {
namespace {

// The batch of timings if the config names none. In decode it is 1, because a text is written alone.
std::int64_t usual_batch(Phase phase, const ReportConfig& report) {
  return phase == Phase::decode || report.latency.batch.empty() ? 1 : std::ranges::max(report.latency.batch);
}

// For a block that has the keys keep and keep_for.
template <class Block>
VetoOptions veto_options(const Block& config, const StageConfig& stage, const ReportConfig& report) {
  const Phase phase = phase_named(config.keep_for.phase);
  return {.only_faster = config.keep == "faster",
          .batch = config.keep_for.batch.value_or(usual_batch(phase, report)),
          .length = config.keep_for.length,
          .timing = {.phase = phase, .recompute = stage.training.recompute, .folded = for_inference}};
}

StagePass factorise_pass(const StageConfig& stage, const ReportConfig& report, const StageResults& results, Values values) {
  const FactoriseConfig& config = *stage.factorise;
  StagePass made{.key = "factorise", .pass = nullptr, .veto = {}, .may_leave_dense = config.keep == "faster"};
  if (!config.from) {
    made.pass = std::make_unique<FactorisePass>(config, values);
    made.veto = veto_options(config, stage, report);
    return made;
  }
  const StageResult* const result = results.find(*config.from);
  TESSERA_CHECK(result != nullptr, InternalError, "stage ", stage.name, ": the stage ", *config.from, " left no ranks");
  made.pass = std::make_unique<FactorisePass>(config, values, result->layers);
  return made;
}

bool clock_decides(const LowRankConfig& config) { return config.keep == "faster" || config.ranks_by_latency(); }

// Whether the stage settles ranks before it trains, which a low-rank admm block does.
bool settles_ranks(const StageConfig& stage) { return stage.admm && !stage.admm->sparsity; }

}  // namespace

bool has_passes(const StageConfig& stage) { return stage.shrink || stage.factorise || settles_ranks(stage) || stage.sparsify; }

std::vector<std::pair<std::string, VetoOptions>> stage_vetoes(const StageConfig& stage, const ReportConfig& report) {
  std::vector<std::pair<std::string, VetoOptions>> vetoes;
  if (stage.shrink) vetoes.emplace_back("shrink", veto_options(*stage.shrink, stage, report));
  if (stage.factorise && !stage.factorise->from) vetoes.emplace_back("factorise", veto_options(*stage.factorise, stage, report));
  if (settles_ranks(stage)) vetoes.emplace_back("admm", veto_options(*stage.admm, stage, report));
  if (stage.sparsify) vetoes.emplace_back("sparsify", veto_options(*stage.sparsify, stage, report));
  return vetoes;
}

bool clock_decides(const StageConfig& stage) {
  return (stage.factorise && !stage.factorise->from && clock_decides(static_cast<const LowRankConfig&>(*stage.factorise))) ||
         (settles_ranks(stage) && clock_decides(static_cast<const LowRankConfig&>(*stage.admm))) ||
         (stage.shrink && stage.shrink->keep == "faster") || (stage.sparsify && stage.sparsify->keep == "faster");
}

std::vector<StagePass> stage_passes(const StageConfig& stage, const ReportConfig& report, const StageResults& results,
                                    Values values) {
  std::vector<StagePass> passes;
  if (stage.shrink) {
    passes.push_back({.key = "shrink",
                      .pass = std::make_unique<ShrinkPass>(*stage.shrink),
                      .veto = veto_options(*stage.shrink, stage, report),
                      .may_leave_dense = stage.shrink->keep == "faster"});
  }
  if (stage.factorise) passes.push_back(factorise_pass(stage, report, results, values));
  if (settles_ranks(stage)) {
    passes.push_back({.key = "admm",
                      .pass = std::make_unique<AdmmPass>(*stage.admm, values),
                      .veto = veto_options(*stage.admm, stage, report),
                      .settles = true});
  }
  if (stage.sparsify) {
    passes.push_back({.key = "sparsify",
                      .pass = std::make_unique<SparsifyPass>(*stage.sparsify),
                      .veto = veto_options(*stage.sparsify, stage, report),
                      .may_leave_dense = stage.sparsify->keep == "faster"});
  }
  return passes;
}

std::vector<TimedBatch> other_phases(Phase decides, const ReportConfig& report, std::optional<std::int64_t> training_batch) {
  std::vector<TimedBatch> others;
  for (const Phase phase : {Phase::inference, Phase::decode}) others.push_back({phase, usual_batch(phase, report)});
  if (training_batch) others.push_back({Phase::training, *training_batch});
  std::erase_if(others, [&](const TimedBatch& other) { return other.phase == decides; });
  return others;
}

std::vector<BlockProblem> timing_problems(const VetoOptions& veto, Module& network, const Shape& input) {
  if (veto.timing.phase != Phase::decode) return {};
  if (const std::string reason = why_not_decode(network); !reason.empty()) {
    return {{"keep_for.phase", str("is decode, in which no network but one that writes text runs; ", reason)}};
  }
  try {
    network.output_shape({1, veto.length_at(Phase::decode, input)});
  } catch (const ShapeError& error) {
    return {{"keep_for.length", error.what()}};
  }
  return {};
}

void assume_trained(const StageConfig& stage, Module& model) {
  if (stage.prune) prune_to_target(*stage.prune, model);
  if (stage.rigl) draw_masks(*stage.rigl, model, 0);
}

PassReport run_stage_pass(StagePass& pass, const StageConfig& stage, std::unique_ptr<Module>& model, const Shape& input,
                          StageResults& results, const Veto* veto, const TrainingBatches* batches) {
  if (!pass.settles) return run_pass(model, *pass.pass, input, veto, batches);
  std::unique_ptr<Module> copy = copy_of(*model);
  PassReport report = run_pass(copy, *pass.pass, input, veto, batches);
  results.stages.push_back({stage.name, constrained_layers(report)});
  return report;
}

void settle_passes(StageConfig& stage, const ReportConfig& report) {
  if (stage.factorise && !stage.factorise->from) {
    stage.factorise->keep_for.batch = veto_options(*stage.factorise, stage, report).batch;
  }
  if (settles_ranks(stage)) stage.admm->keep_for.batch = veto_options(*stage.admm, stage, report).batch;
  if (stage.shrink) stage.shrink->keep_for.batch = veto_options(*stage.shrink, stage, report).batch;
  if (stage.sparsify) stage.sparsify->keep_for.batch = veto_options(*stage.sparsify, stage, report).batch;
}

}  // namespace tessera

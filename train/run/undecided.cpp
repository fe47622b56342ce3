#include "train/run/undecided.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "train/data/builtin.h"
#include "train/run/compute_dtype.h"
#include "train/run/environment.h"
#include "train/run/stage_passes.h"

namespace tessera {
namespace {

// Where a choice is timed, in the words that a Veto of the run will use.
std::string decided_where(const ExperimentConfig& config, const VetoOptions& veto) {
  const Device device = resolve_device(config.device);
  return where_timed({.batch = veto.batch,
                      .phase = veto.timing.phase,
                      .length = veto.length_at(veto.timing.phase, sample_shape(config.data)),
                      .machine = machine_text(device, resolve_compute_threads(config.threads.compute)),
                      .folded = veto.timing.on_folded_copies(),
                      .compute = compute_dtype_of(config),
                      .recompute = veto.timing.recompute && veto.timing.phase == Phase::training,
                      .tf32 = takes_tf32(config)});
}

bool holds(const DecisionMap& given, std::string_view kind, const std::string& where) {
  return std::ranges::any_of(
      given, [&](const auto& decision) { return decision.first.starts_with(kind) && decision.first.ends_with(' ' + where); });
}

bool ranks_by_latency(const StageConfig& stage, const std::string& block) {
  if (block == "admm") return stage.admm->ranks_by_latency();
  return block == "factorise" && stage.factorise->ranks_by_latency();
}

}  // namespace

std::vector<BlockProblem> undecided_choices(const ExperimentConfig& config, const DecisionMap& given, std::size_t first) {
  std::vector<BlockProblem> problems;
  if (!config.deterministic) return problems;
  for (std::size_t i = first; i < config.stages.size(); ++i) {
    for (const auto& [key, veto] : stage_vetoes(config.stages[i], config.report)) {
      const std::string block = str("stages[", i, "].", key);
      const std::string where = decided_where(config, veto);
      if (ranks_by_latency(config.stages[i], key) && !holds(given, kLatencyDecision, where)) {
        problems.push_back(
            {block + ".ranks", str("latency is measured, which deterministic: true forbids; replay the timings of a run, at ",
                                   where, ", with train --decisions FILE, or ask for ranks in another way")});
      }
      if (veto.only_faster && !holds(given, kKeepDecision, where)) {
        problems.push_back(
            {block + ".keep",
             str("faster is decided by a clock, which deterministic: true forbids; replay the choices of a run that "
                 "kept layers so, at ",
                 where, ", with train --decisions FILE, or set keep: always")});
      }
    }
  }
  return problems;
}

std::vector<BlockProblem> undecided_layers(const ExperimentConfig& config, const DecisionMap& given, std::size_t stage,
                                           const std::function<std::unique_ptr<Module>()>& load) {
  if (!config.deterministic || stage >= config.stages.size()) return {};
  const StageConfig& here = config.stages[stage];
  if (here.factorise && here.factorise->from) return {};  // another stage has decided
  const std::vector<StagePass> passes = stage_passes(here, config.report, {}, Values::zeros);
  if (passes.empty() || !passes.front().veto->only_faster) return {};
  const StagePass& first = passes.front();
  // Where ranks come from timings or from batches of the data, the layers that stay dense are not known here.
  if (ranks_by_latency(here, first.key) || (first.key == "factorise" && here.factorise->weighted)) return {};
  std::unique_ptr<Module> network = load();
  // What else is wrong with the pass is told where it runs.
  if (!first.pass->try_prepare(network, sample_shape(config.data)).empty()) return {};
  const std::string where = decided_where(config, *first.veto);
  std::vector<BlockProblem> problems;
  for_each_module(*network, [&](const Module& layer) {
    LayerReport row;
    if (!first.pass->matches(layer.path(), layer) || holds_keep_choice(given, layer, where)) return;
    if (first.pass->rewrite(layer, row) == nullptr) return;  // it stays dense, and no clock is asked
    problems.push_back({str("stages[", stage, "].", first.key, ".keep"),
                        str("faster is decided by a clock, which deterministic: true forbids, and no choice for layer '",
                            layer.path(), "' at ", where,
                            " is recorded; replay the choices of a run that has one with train --decisions FILE, or set keep: "
                            "always")});
  });
  return problems;
}

}  // namespace tessera

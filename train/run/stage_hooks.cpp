#include "train/run/stage_hooks.h"

#include "admm/admm.h"
#include "compress/prune/prune.h"
#include "core/support/error.h"
#include "optim/ema.h"
#include "train/run/distill.h"

namespace tessera {
namespace {

constexpr std::string_view kPrefix = "hook.";

}  // namespace

std::vector<MakeHook> training_hooks(const TrainingConfig& config) {
  std::vector<MakeHook> hooks;
  if (config.ema) {
    hooks.push_back(
        [ema = *config.ema](const HookSetting& setting) { return std::make_unique<Ema>(ema, setting.model, setting.slots); });
  }
  return hooks;
}

std::vector<MakeHook> stage_hooks(const StageConfig& stage, const StageResults& results, Module* teacher, DType compute) {
  std::vector<MakeHook> hooks;
  if (stage.distill) {
    TESSERA_CHECK(teacher != nullptr, InternalError, "stage ", stage.name, ": its teacher is not there");
    hooks.push_back([config = *stage.distill, teacher, compute](const HookSetting&) {
      return std::make_unique<Distill>(config, *teacher, compute);
    });
  }
  if (stage.admm && stage.admm->sparsity) {
    hooks.push_back([config = *stage.admm](const HookSetting& setting) {
      std::vector<BlockProblem> problems;
      std::vector<ConstrainedLayer> layers = sparse_layers(config, setting.model, problems);
      TESSERA_CHECK(problems.empty(), ConfigError, "admm: ", problems.front().key, ": ", problems.front().message);
      return std::make_unique<Admm>(config, std::move(layers), setting.model, setting.length, setting.slots);
    });
  } else if (stage.admm) {
    const StageResult* const settled = results.find(stage.name);
    TESSERA_CHECK(settled != nullptr, InternalError, "stage ", stage.name, ": its admm pass has not run");
    hooks.push_back([config = *stage.admm, layers = settled->layers](const HookSetting& setting) {
      return std::make_unique<Admm>(config, low_rank_layers(config, layers), setting.model, setting.length, setting.slots);
    });
  }
  if (stage.prune) {
    hooks.push_back([config = *stage.prune](const HookSetting& setting) {
      return std::make_unique<Prune>(config, setting.model, setting.length, setting.seed);
    });
  }
  return hooks;
}

std::string part_of_hook(std::string_view name) { return str(kPrefix, name); }

bool is_part_of_hook(std::string_view part) { return part.starts_with(kPrefix); }

std::string evaluation_part() { return part_of_hook(Ema::kName); }

}  // namespace tessera

#include "train/run/stage_hooks.h"

#include "admm/admm.h"
#include "compress/prune/prune.h"
#include "compress/prune/rigl.h"
#include "compress/prune/sr_ste.h"
#include "core/support/error.h"
#include "optim/ema.h"
#include "train/run/distill.h"

namespace tessera {
namespace {

constexpr std::string_view kPrefix = "hook.";

LossGradients loss_gradients(const ReadBatches& batches, const WithGradients& with_gradients) {
  return [batches, with_gradients](std::int64_t first, std::int64_t count, const std::function<void()>& each) {
    batches(first, count, [&](const Batch& batch) { with_gradients(batch, each); });
  };
}

MakeHook prune_hook(const StageConfig& stage, const ReadBatches& batches) {
  const bool decoupled = stage.training.optimizer.decouples_decay();
  return [config = *stage.prune, decoupled, batches](const HookSetting& setting) -> std::unique_ptr<Hook> {
    if (config.sr_ste) return std::make_unique<SrSte>(config, setting.model, setting.length, decoupled);
    const Prune::Sources sources{.seed = setting.seed, .gradients = loss_gradients(batches, setting.with_gradients)};
    return std::make_unique<Prune>(config, setting.model, setting.length, sources);
  };
}

MakeHook sparse_admm_hook(const AdmmConfig& config) {
  return [config](const HookSetting& setting) {
    std::vector<BlockProblem> problems;
    std::vector<ConstrainedLayer> layers = sparse_layers(config, setting.model, problems);
    TESSERA_CHECK(problems.empty(), ConfigError, "admm: ", problems.front().key, ": ", problems.front().message);
    return std::make_unique<Admm>(config, std::move(layers), setting.model, setting.length, setting.slots, setting.ranks);
  };
}

}  // namespace

std::vector<MakeHook> training_hooks(const TrainingConfig& config) {
  std::vector<MakeHook> hooks;
  if (config.ema) {
    hooks.push_back(
        [ema = *config.ema](const HookSetting& setting) { return std::make_unique<Ema>(ema, setting.model, setting.slots); });
  }
  return hooks;
}

std::vector<MakeHook> stage_hooks(const StageConfig& stage, const HookInputs& inputs) {
  std::vector<MakeHook> hooks;
  if (stage.distill) {
    TESSERA_CHECK(inputs.teacher != nullptr, InternalError, "stage ", stage.name, ": its teacher is not there");
    hooks.push_back([config = *stage.distill, teacher = inputs.teacher, compute = inputs.compute](const HookSetting&) {
      return std::make_unique<Distill>(config, *teacher, compute);
    });
  }
  if (stage.prune) hooks.push_back(prune_hook(stage, inputs.batches));  // before the hooks that read dense weights
  if (stage.rigl) {
    hooks.push_back([config = *stage.rigl](const HookSetting& setting) {
      return std::make_unique<Rigl>(config, setting.model, setting.length, setting.seed);
    });
  }
  if (stage.admm && stage.admm->sparsity) {
    hooks.push_back(sparse_admm_hook(*stage.admm));
  } else if (stage.admm) {
    const StageResult* const settled = inputs.results.find(stage.name);
    TESSERA_CHECK(settled != nullptr, InternalError, "stage ", stage.name, ": its admm pass has not run");
    hooks.push_back([config = *stage.admm, layers = settled->layers](const HookSetting& setting) {
      return std::make_unique<Admm>(config, low_rank_layers(config, layers, setting.model), setting.model, setting.length,
                                    setting.slots, setting.ranks);
    });
  }
  return hooks;
}

std::string part_of_hook(std::string_view name) { return str(kPrefix, name); }

bool is_part_of_hook(std::string_view part) { return part.starts_with(kPrefix); }

std::string evaluation_part() { return part_of_hook(Ema::kName); }

std::string hiding_part() { return part_of_hook(SrSte::kName); }

}  // namespace tessera

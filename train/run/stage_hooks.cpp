#include "train/run/stage_hooks.h"

#include "core/support/error.h"
#include "optim/ema.h"

namespace tessera {
namespace {

constexpr std::string_view kPrefix = "hook.";

}  // namespace

std::vector<MakeHook> training_hooks(const TrainingConfig& config) {
  std::vector<MakeHook> hooks;
  if (config.ema) {
    hooks.push_back([ema = *config.ema](const HookSetting& setting) {
      return std::make_unique<Ema>(ema, setting.model, setting.slots);
    });
  }
  return hooks;
}

std::string part_of_hook(std::string_view name) { return str(kPrefix, name); }

bool is_part_of_hook(std::string_view part) { return part.starts_with(kPrefix); }

std::string evaluation_part() { return part_of_hook(Ema::kName); }

}  // namespace tessera

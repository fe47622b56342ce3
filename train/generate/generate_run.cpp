#include "train/generate/generate_run.h"

#include <array>

#include "core/device/precision.h"
#include "core/support/error.h"
#include "train/data/text/text_config.h"
#include "train/run/compute_dtype.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 3> kAllowed{"threads.compute", "device", "precision"};

TextDescription description_of(const Checkpoint& checkpoint, const RunFolder& run) {
  const Value* const text = checkpoint.manifest.find("text");
  TESSERA_CHECK(text != nullptr, ConfigError, "generate: ", run.path(), " was not trained on text");
  TextDescription description = text_description(checkpoint.manifest);
  TESSERA_CHECK(description.predicts_next(), ConfigError, "generate: ", run.path(), " learns the task ", description.task,
                "; needs ", name_of(TextTask::next_token));
  return description;
}

}  // namespace

Generated generate_from_run(Vfs& vfs, const RunFolder& run, const GenerateRunOptions& options, const StopRequest& stop,
                            const std::function<void(std::string_view)>& write) {
  check(options.text);
  const ExperimentConfig config = settings_of(run, options.overrides, kAllowed, "generate");
  const Device device = resolve_device(config.device);
  const Checkpoint checkpoint = load_at(vfs, run, options.at, "generate");
  const auto tokenizer = tokenizer_of(description_of(checkpoint, run));
  prompt_tokens(*tokenizer, options.text.prompt);  // refuses an impossible prompt before the network is built
  set_compute_threads(config.threads.compute);
  const Tf32Products products(takes_tf32(config));
  const std::unique_ptr<Module> model = evaluation_model(checkpoint);
  move_to(*model, device);
  // The run's own file may grow between two calls. The choices in a checkpoint do not change.
  const DecisionMap decisions = recorded_decisions(checkpoint.manifest);
  return generate_text(*model, tokenizer, compute_dtype_of(config), options.text, decisions, stop, write);
}

}  // namespace tessera

#include "train/run/saved_model.h"

#include "compress/prune/sr_ste.h"
#include "core/support/error.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "train/run/model_state.h"
#include "train/run/stage_hooks.h"

namespace tessera {
namespace {

std::unique_ptr<Module> with_weights(const Checkpoint& checkpoint, const State& weights) {
  std::unique_ptr<Module> model = rebuild(checkpoint.manifest.at("model"), builtin_layers());
  load_model_state(*model, weights);
  return model;
}

}  // namespace

const State& saved_weights(const Checkpoint& checkpoint) {
  const auto model = checkpoint.parts.find("model");
  TESSERA_CHECK(model != checkpoint.parts.end(), IoError, checkpoint.folder.string(), ": the part 'model' is missing");
  return model->second;
}

std::unique_ptr<Module> saved_model(const Checkpoint& checkpoint) { return with_weights(checkpoint, saved_weights(checkpoint)); }

bool has_averages(const Checkpoint& checkpoint) { return checkpoint.parts.contains(evaluation_part()); }

std::unique_ptr<Module> evaluation_model(const Checkpoint& checkpoint) {
  State weights = saved_weights(checkpoint);  // masks and whole-number buffers are not averaged
  if (has_averages(checkpoint)) {
    for (const auto& [path, average] : checkpoint.parts.at(evaluation_part()).tensors) weights.tensors[path] = average;
  }
  const auto hiding = checkpoint.parts.find(hiding_part());
  if (hiding != checkpoint.parts.end()) hide_as_evaluated(hiding->second, weights.tensors);
  return with_weights(checkpoint, weights);
}

}  // namespace tessera

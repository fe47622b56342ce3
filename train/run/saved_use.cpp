#include "train/run/saved_use.h"

#include "train/data/splits.h"
#include "train/run/decisions_file.h"

namespace tessera {

NetworkUse use_of_run(const ExperimentConfig& config, const Value& manifest) {
  NetworkUse use = use_of_checkpoint(manifest);
  use.task = task_name(config.data);
  use.precision = config.precision;
  return use;
}

NetworkUse use_of_checkpoint(const Value& manifest) {
  NetworkUse use;
  use.data = keys_of_export(manifest);
  use.decisions = to_value(recorded_decisions(manifest));
  return use;
}

DecisionMap decisions_of(const NetworkUse& use) {
  return use.decisions.as_map().empty() ? DecisionMap() : decisions_from(use.decisions);
}

}  // namespace tessera

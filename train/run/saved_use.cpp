#include "train/run/saved_use.h"

#include "train/data/splits.h"
#include "train/run/decisions_file.h"

namespace tessera {

NetworkUse use_of_run(const ExperimentConfig& config, const Value& manifest) {
  return {.task = std::string(task_name(config.data)),
          .precision = config.precision,
          .data = keys_of_export(manifest),
          .decisions = to_value(recorded_decisions(manifest))};
}

}  // namespace tessera

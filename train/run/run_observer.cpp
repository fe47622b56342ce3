#include "train/run/run_observer.h"

#include "train/run/checkpointing.h"
#include "train/run/training_log.h"
#include "train/run/validation.h"

namespace tessera {

std::vector<std::unique_ptr<RunObserver>> make_observers(RunContext& run) {
  std::vector<std::unique_ptr<RunObserver>> observers;
  observers.push_back(std::make_unique<TrainingLog>(run));
  observers.push_back(std::make_unique<Validation>(run));
  observers.push_back(std::make_unique<ProgressLine>(run));
  observers.push_back(std::make_unique<Checkpointing>(run));
  return observers;
}

}  // namespace tessera

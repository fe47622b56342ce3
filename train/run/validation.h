// A run's look at the validation split, between epochs.
#pragma once

#include "train/run/run_observer.h"

namespace tessera {

// At the end of each epoch, and of the stage: the metrics on val, where there is one, and the line that a person reads. Notes
// the best step in the position, by which checkpoints know it.
class Validation final : public RunObserver {
 public:
  using RunObserver::RunObserver;
  void on_step_end(const StepEnd& step) override;

 private:
  Evaluation evaluate_val();
};

}  // namespace tessera

// When a run saves.
#pragma once

#include "train/run/run_observer.h"

namespace tessera {

// Every checkpoint.every, after an epoch with the stage's best metric on val (checkpoint.best), when a stop is asked for, and at
// the stage's end, whose record and report it writes.
class Checkpointing final : public RunObserver {
 public:
  using RunObserver::RunObserver;
  void on_step_end(const StepEnd& step) override;
  void on_stage_end() override;
  void on_stop() override;
};

}  // namespace tessera

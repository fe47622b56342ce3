// What a run writes and shows of its steps.
#pragma once

#include "train/run/run_observer.h"

namespace tessera {

// Every log_every steps a line of metrics.jsonl and timing.jsonl, after every step the rows of hooks; once, how much of what
// --decisions gave is of use. Throws NumericError on a loss or state that is not finite.
class TrainingLog final : public RunObserver {
 public:
  using RunObserver::RunObserver;
  void on_step_end(const StepEnd& step) override;

 private:
  void log_interval();
  void tell_replay();
};

// The bar on a terminal, and the time that is left.
class ProgressLine final : public RunObserver {
 public:
  using RunObserver::RunObserver;
  void on_stage_begin() override;
  void on_step_end(const StepEnd& step) override;
};

}  // namespace tessera

// What a run writes and shows of its steps.
#pragma once

#include <chrono>

#include "train/run/run_observer.h"

namespace tessera {

// Every log_every steps, and at the last step of each epoch and of the stage, a line of metrics.jsonl and timing.jsonl; after
// every step the rows of hooks; once, how much of what --decisions gave is of use. Throws NumericError on a loss or state that is
// not finite.
class TrainingLog final : public RunObserver {
 public:
  using RunObserver::RunObserver;
  void on_stage_begin() override;
  void on_step_end(const StepEnd& step) override;

 private:
  using Clock = std::chrono::steady_clock;
  void log_interval();
  double samples_per_second();  // since the line before, or since the stage went on here
  void tell_replay();

  Clock::time_point since_;
  std::int64_t from_ = 0;  // step of the stage
};

// The bar on a terminal, and the time that is left.
class ProgressLine final : public RunObserver {
 public:
  using RunObserver::RunObserver;
  void on_stage_begin() override;
  void on_step_end(const StepEnd& step) override;
};

}  // namespace tessera

// A run's steps under `--profile`.
#pragma once

#include <cstdint>
#include <memory>

#include "train/run/run_context.h"
#include "train/run/step_profiler.h"

namespace tessera {

// Profiles SessionOptions::profile_steps steps of the first stage that has them, and writes profile.md and profile.json. Without
// steps to profile it only takes them. Throws ConfigError where the device cannot be profiled.
class Profiling {
 public:
  explicit Profiling(RunContext& run);

  void begin_stage();
  void take_step();  // one of the run's
  void end_stage();  // writes what there is
  // At the run's end: why a profile that was asked for could not be taken. `first_step`: of this process.
  void tell_missing(std::int64_t first_step);

 private:
  void write();  // of the steps so far; nothing where there are none

  RunContext& run_;
  std::unique_ptr<StepProfiler> profiler_;  // null without one, and once it has told
};

}  // namespace tessera

// Someone who takes part in a run beside its computing: logs, validation, checkpoints, progress.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/run/run_context.h"

namespace tessera {

struct StepEnd {
  std::int64_t stage_steps = 0;  // that the stage has in all
  bool epoch = false;  // the step is the last of an epoch
  bool last = false;  // of the stage
};

class RunObserver {
 public:
  explicit RunObserver(RunContext& run) : run_(run) {}
  virtual ~RunObserver() = default;

  virtual void on_stage_begin() {}  // before the first step that this process takes of it
  virtual void on_step_end(const StepEnd&) {}  // after what hooks do between steps
  virtual void on_stage_end() {}  // its last step is done, and its hooks have ended; of a stage that does not train too
  virtual void on_stop() {}  // asked for between two steps

 protected:
  RunContext& run_;
};

// In the order in which they are called, which matters: a line of the log before the validation that follows it, and that before
// the checkpoint that may be the best.
std::vector<std::unique_ptr<RunObserver>> make_observers(RunContext& run);

}  // namespace tessera

// One run from its first step to its last, or from a checkpoint on: stages in order, saving, logging, stopping.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/run/profiling.h"
#include "train/run/run_context.h"
#include "train/run/run_inputs.h"
#include "train/run/run_observer.h"

namespace tessera {

enum class RunOutcome { finished, stopped };

class Session {
 public:
  // A fresh run of the inputs that the experiment asks for: writes the run folder's files.
  static Session start(Vfs& vfs, Experiment experiment, RunInputs inputs, const std::string& config_text, RunFolder folder,
                       SessionOptions options);
  // Resumes from the folder's newest good checkpoint; from the seed when there is none yet. Warns, through the log, when the
  // environment differs from the one the run began in. Throws IoError where the data is not what the run began with.
  static Session resume(Vfs& vfs, RunFolder folder, SessionOptions options);

  // Runs to the end of the last stage, or to a stop. Throws what training throws; the last good checkpoint stands then. After a
  // NaN or Inf the steps since it are replayed, to name the op that made the first one; that writes nothing but lines of the log.
  RunOutcome run();

  const RunFolder& folder() const { return run_->folder; }

 private:
  Session(Vfs& vfs, const ExperimentConfig& config, DataSplits data, RunFolder folder, SessionOptions options);

  static Session go_on(Vfs& vfs, const Experiment& experiment, RunFolder folder, SessionOptions options);
  RunOutcome run_stages();
  RunOutcome run_stage();
  RunOutcome train_stage();
  void take_step();
  RunOutcome train_steps(std::int64_t total);
  void begin_next_stage();

  std::unique_ptr<RunContext> run_;  // stays where it is when a session is moved
  std::unique_ptr<Profiling> profiling_;
  std::vector<std::unique_ptr<RunObserver>> observers_;
};

}  // namespace tessera

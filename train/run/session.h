// One run from its first step to its last, or from a checkpoint on: stages in order, saving, logging, stopping.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>

#include "core/device/decisions.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "train/checkpoint/run_lock.h"
#include "train/checkpoint/store.h"
#include "train/experiment.h"
#include "train/run/progress.h"
#include "train/run/run_folder.h"
#include "train/run/run_records.h"
#include "train/run/run_saver.h"
#include "train/run/run_state.h"
#include "train/run/step_profiler.h"
#include "train/run/stop.h"

namespace tessera {

struct SessionOptions {
  std::ostream* out = nullptr;  // progress and plain lines; null = silent
  bool terminal = false;  // out is a terminal: draw a bar
  StopRequest stop;
  DecisionMap decisions = {};  // of a run to replay; for a fresh run only
  std::int64_t profile_steps = 0;  // steps to profile in the first stage that has them; 0 = none
};

enum class RunOutcome { finished, stopped };

class Session {
 public:
  // A fresh run of the inputs that the experiment asks for: writes the run folder's files.
  static Session start(Vfs& vfs, Experiment experiment, RunInputs inputs, const std::string& config_text, RunFolder folder,
                       SessionOptions options);
  // From the newest good checkpoint of the folder; from the seed when there is none yet. Warns, through the log, when the
  // environment differs from the one the run began in.
  static Session resume(Vfs& vfs, RunFolder folder, SessionOptions options);

  // Until the last stage ends or a stop is asked for. Throws what training throws; the last good checkpoint stands then. After a
  // NaN or Inf the steps since it are replayed, to name the op that made the first one; that writes nothing but lines of the log.
  RunOutcome run();

  const RunFolder& folder() const { return folder_; }

 private:
  Session(Vfs& vfs, const ExperimentConfig& config, DataSplits data, RunFolder folder, SessionOptions options);

  void load(const Checkpoint& checkpoint);
  // With the files that the history determines brought to where the run stands: one killed just after a save may lack them.
  void open_records(RunHistory history);
  void write_report();
  RunOutcome run_stages();
  RunOutcome run_stage();
  void begin_next_stage();
  void end_stage();
  void prepare_stage();
  std::vector<PassReport> run_passes();
  RunOutcome train_stage();
  RunOutcome train_steps(std::int64_t total);
  void take_step();
  void tell_missing_profile(std::int64_t first_step);  // why a profile that was asked for could not be taken
  void write_profile();  // of the steps so far; nothing where there are none
  std::string explain(const std::string& found);  // a NaN or Inf; reports an error of the replay, throws none
  std::string smaller_step(const OutOfMemoryError& found);  // after an allocation failed
  std::string way_on(const std::string& change) const;
  void tell_replay();  // how much of what --decisions gave is of use
  void after_step(std::int64_t stage_steps);
  void log_interval();
  bool evaluate_epoch();  // whether validation accuracy is the stage's best so far
  void save();  // what it holds is safe later, see RunSaver
  void finish_saving();
  void write_status(const std::string& state);
  void write_failure();  // throws nothing: an error is on its way
  const ExperimentConfig& config() const { return state_.config(); }
  const StageConfig& stage() const { return state_.stage(); }

  Vfs& vfs_;
  RunFolder folder_;
  SessionOptions options_;
  RunLock lock_;
  RunSaver saver_;
  RunState state_;
  std::unique_ptr<DecisionScope> decisions_;  // from before the first step on
  std::unique_ptr<RunRecords> records_;  // null until it is known where the run stands
  std::unique_ptr<StepProfiler> profiler_;  // null without one, and once it has told
  Progress progress_;
  std::optional<double> last_loss_;  // of the last logged interval; empty before the first
  std::optional<double> last_accuracy_;  // on val; empty before the first evaluation
};

}  // namespace tessera

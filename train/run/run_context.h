// A run under way: what its loop and its observers share.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/decisions.h"
#include "core/io/vfs.h"
#include "train/checkpoint/run_lock.h"
#include "train/experiment.h"
#include "train/run/progress.h"
#include "train/run/rank_leader.h"
#include "train/run/run_folder.h"
#include "train/run/run_records.h"
#include "train/run/run_saver.h"
#include "train/run/run_state.h"
#include "train/run/stop.h"

namespace tessera {

struct SessionOptions {
  std::ostream* out = nullptr;  // progress and plain lines; null = silent
  bool terminal = false;  // out is a terminal: draw a bar
  StopRequest stop;
  DecisionMap decisions = {};  // of a run to replay; for a fresh run only
  std::int64_t profile_steps = 0;  // steps to profile in the first stage that has them; 0 = none
  Communicator* ranks = &one_process();  // that the run is computed by; this process is rank 0, the others follow_rank_0()
  bool advise = true;  // a failure's message ends with the command that goes on from the last good checkpoint
};

struct RunContext {
  RunContext(Vfs& vfs, const ExperimentConfig& config, DataSplits data, RunFolder folder, SessionOptions options);

  Vfs& vfs;
  RunFolder folder;
  SessionOptions options;
  RunLock lock;
  RunSaver saver;
  RankLeader leader;
  RunState state;
  std::unique_ptr<DecisionScope> decisions = {};  // from before the first step on
  std::unique_ptr<RunRecords> records = {};  // null until it is known where the run stands
  Progress progress;
  std::vector<std::string> changes = {};  // of environment_changes(), that this and earlier resumes have found
  std::optional<double> last_loss = {};  // of the stage's last logged interval; empty before the first
  std::optional<Scored> last_metric = {};  // the task's first on val; empty before the stage's first evaluation

  const ExperimentConfig& config() const { return state.config(); }
  const StageConfig& stage() const { return state.stage(); }

  // Opens the records, and writes again the files that follow from the history: a run killed just after a save may lack them.
  void open_records(RunHistory history);
  void write_report();
  void write_status(const std::string& word);
  void save();  // what it holds is safe later, see RunSaver
  void finish_saving();
  void poll_saving();  // throws the error of a save in the background
};

}  // namespace tessera

// Rank 0 of a run in several processes: it alone decides, measures and writes. It tells the others (rank_follower.h) where each
// stage begins; then all take the same steps and evaluate, each on its share of the batches. With one process nothing here does
// anything.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compress/timing/veto.h"
#include "core/comm/communicator.h"
#include "core/device/decisions.h"
#include "train/run/run_folder.h"
#include "train/run/run_state.h"

namespace tessera {

// Throws ConfigError naming what several ranks cannot do yet, such as leaving out broken images.
void refuse_for_ranks(const Communicator& ranks, const ExperimentConfig& config);

class RankLeader {
 public:
  explicit RankLeader(Communicator& ranks);  // throws ConfigError where the environment asks for what is no number of steps
  RankLeader(const RankLeader&) = delete;
  RankLeader& operator=(const RankLeader&) = delete;

  // fair_threads(), the compute threads of each rank; with one process 0, which stands for auto.
  std::int64_t compute_threads();
  // Before anything is written. The other ranks take over the config, open their logs in the folder, and all compare programs,
  // machines and data: throws Error.
  void begin(const RunState& state, const Value& resolved, const RunFolder& folder);
  // Before the stage's first step in this process, and after the stage's passes, which have run here alone. The others load the
  // state as they would a checkpoint. Throws Error where the networks then differ.
  void begin_stage(const RunState& state, const DecisionMap& decisions);
  // Before each step: whether any rank is asked to stop. Then the state is gathered for the last save. With
  // TESSERA_COMPARE_RANKS=10 in the environment of rank 0, ranks first compare before every tenth step as compare() does.
  bool agree_to_stop(bool asked, RunState& state);
  // A choice by a clock, once it is recorded: the others take it too.
  void measured(const std::string& key, const std::string& choice);
  // In an evaluation that all take part in: this rank's batches are done. The others may have waited for what it chose.
  void evaluated();
  // Before a save between two steps: the others hand over what they alone know of the trainer's state.
  void gather_state(StageTrainer& trainer);
  // The end of an epoch or a stage: throws Error where networks or states of training are no longer the same.
  void compare(const RunState& state);
  // Takes the timings that a factorisation's ranks are chosen by, in rounds. This process takes its share of each round. A round
  // is recorded when all processes have answered. An error that any of them meets is thrown then.
  void time_layers(std::span<const RankTiming> timings, const TimingOptions& options, const RankClock& clock);
  // Whether other ranks are on machines or GPUs of their own.
  bool shares_timings() const { return timers_.size() > 1; }
  void end(bool finished);

  // Lives while all ranks do the same thing: a step, what hooks do before the first step, or an evaluation. Meanwhile the others
  // ask for the choices that rank 0 measures.
  class Together {
   public:
    explicit Together(RankLeader& leader) : leader_(leader) { leader_.together_ = true; }
    ~Together() { leader_.together_ = false; }
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;

   private:
    RankLeader& leader_;
  };

 private:
  bool alone() const { return ranks_.size() == 1; }

  Communicator& ranks_;
  std::int64_t compare_every_ = 0;  // steps; 0 = at the ends of epochs and stages alone
  bool together_ = false;
  bool gathered_ = false;  // for the save that follows a stop
  DecisionMap untold_;  // measured where the others did not listen
  std::vector<int> timers_;  // of ranks_that_time()
};

// What ranks compare before the first step.
Value machine_of_rank(const ExperimentConfig& config);
// In a stage, between two steps: the network, the optimiser's state and every hook's. On every rank the same Error.
void compare_states(Communicator& ranks, const RunState& state);

}  // namespace tessera

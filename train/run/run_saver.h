// The saving half of a run: which checkpoints stay, whether training waits for them, and which step is safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/io/vfs.h"
#include "core/nn/state.h"
#include "train/checkpoint/background_saver.h"
#include "train/checkpoint/store.h"
#include "train/experiment.h"
#include "train/run/history.h"
#include "train/run/position.h"

namespace tessera {

class RunSaver {
 public:
  // Opens the folder for writing; `lock` is the run's and outlives the saver.
  RunSaver(Vfs& vfs, const std::filesystem::path& folder, const CheckpointConfig& config, const RunLock& lock);

  const CheckpointStore& store() const noexcept { return *store_; }
  // `history` is the checkpoint's: it knows the best of stages that are over.
  void resumed_from(const Checkpoint& checkpoint, const Position& position, const RunHistory& history);
  void next_stage();  // the finished stage's best stays pinned; with checkpoint.keep_best: run until a later stage's is saved

  // This step is saved, or is being.
  bool holds(const Position& position) const noexcept { return asked_ == position.global_step && !position.stage_done; }
  // Waits for the save before it. With checkpoint.async, returns as soon as the state is copied; a stage's last checkpoint is
  // waited for, because what follows it may be timed. Throws IoError when this or the save before it failed.
  void save(const Position& position, const std::map<std::string, State>& parts, const Value& manifest);
  // Whether a save has ended since the last call. Both throw its error.
  bool poll();
  bool finish();  // waits for it

  std::int64_t last_step() const noexcept { return last_step_; }  // newest safe one, -1 = none
  std::int64_t last_time() const noexcept { return last_time_; }  // when, in seconds since 1970

 private:
  void pin(const Position& position);
  void pin_newest_best(const Position& position, const RunHistory& history);
  void note(const SaveResult& result);

  std::unique_ptr<CheckpointStore> store_;  // stays where it is when a saver is moved
  BackgroundSaver background_;
  bool best_;
  bool newest_best_only_;
  bool async_;
  std::int64_t asked_ = -1;
  std::int64_t last_step_ = -1;
  std::int64_t last_time_ = 0;
  std::int64_t pinned_best_ = -1;  // step of the stage's best checkpoint when it is no stage's end
  std::set<std::int64_t> earlier_bests_;  // of stages that are over, as far as they are pinned and no stage's end
};

}  // namespace tessera

// Saves checkpoints beside training: the state is copied, then a thread of its own writes it while training goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>

#include "core/nn/state.h"
#include "train/checkpoint/store.h"

namespace tessera {

class BackgroundSaver {
 public:
  // The store outlives the saver; while a save is under way nothing else may change it, only read.
  explicit BackgroundSaver(CheckpointStore& store) : store_(store) {}
  BackgroundSaver(BackgroundSaver&&) = default;
  // Waits for the save under way. A failure that nobody has asked about becomes a warning in the log.
  ~BackgroundSaver();

  // Returns when every tensor is copied: the caller may change them at once. At most one save is under way: throws InternalError
  // when the result of the one before has not been taken. `then` runs on the saving thread once the checkpoint is safe.
  void start(std::int64_t step, const std::map<std::string, State>& parts, const Value& manifest_extra,
             std::function<void()> then = {});

  bool busy() const noexcept { return saving_.valid(); }  // a save is under way, or has ended and not been taken
  // The result of the save, given once; throws the save's error. Empty when there is no save; poll() is also empty while one is
  // under way.
  std::optional<SaveResult> poll();
  std::optional<SaveResult> wait();

 private:
  CheckpointStore& store_;
  std::future<SaveResult> saving_;
};

}  // namespace tessera

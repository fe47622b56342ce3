#include "train/run/run_saver.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

#include "core/support/log.h"
#include "train/checkpoint/kill_point.h"

namespace tessera {

RunSaver::RunSaver(Vfs& vfs, const std::filesystem::path& folder, const CheckpointConfig& config, const RunLock& lock)
    : store_(std::make_unique<CheckpointStore>(vfs, folder, static_cast<int>(config.keep))),
      background_(*store_),
      best_(config.best),
      newest_best_only_(config.keeps_newest_best_only()),
      async_(config.async) {
  store_->open_for_writing(lock);
}

void RunSaver::resumed_from(const Checkpoint& checkpoint, const Position& position, const RunHistory& history) {
  asked_ = last_step_ = position.global_step;
  const auto saved = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(checkpoint.folder));
  last_time_ = std::chrono::duration_cast<std::chrono::seconds>(saved.time_since_epoch()).count();
  const bool best_is_stage_end = position.stage_done && position.best_step == position.global_step;
  pinned_best_ = best_is_stage_end ? -1 : position.best_step;
  // The store has the pins of the newest checkpoint, which may be damaged and skipped.
  if (best_ && position.best_step >= 0) store_->pin(position.best_step);
  for (const std::int64_t step : store_->steps()) {
    if (step > position.global_step) store_->unpin(step);
  }
  if (best_ && newest_best_only_) pin_newest_best(position, history);
}

// Goes from the newest stage back. A missing best does not replace an earlier one: a fork copies none, and with checkpoint.best
// off none was kept. A best that exists is pinned even if it was unpinned before in favour of one that is now lost.
void RunSaver::pin_newest_best(const Position& position, const RunHistory& history) {
  const std::vector<std::int64_t> steps = store_->steps();
  const auto stands = [&](std::int64_t step) { return std::ranges::binary_search(steps, step); };
  bool newer = stands(position.best_step);
  for (auto stage = history.stages.rbegin(); stage != history.stages.rend(); ++stage) {
    const std::int64_t best = stage->done ? stage->best_step.value_or(-1) : -1;
    if (best < 0 || best == position.best_step) continue;
    const bool is_stage_end = best == stage->end_step;
    if (!is_stage_end && stands(best) && !newer) {
      store_->pin(best);
      earlier_bests_.insert(best);
    } else if (!is_stage_end) {
      store_->unpin(best);
    }
    newer = newer || stands(best);
  }
}

void RunSaver::next_stage() {
  if (pinned_best_ >= 0) earlier_bests_.insert(std::exchange(pinned_best_, -1));
}

void RunSaver::save(const Position& position, const std::map<std::string, State>& parts, const Value& manifest) {
  finish();
  pin(position);
  const std::int64_t step = position.global_step;
  asked_ = step;
  if (async_ && !position.stage_done) {
    background_.start(step, parts, manifest, [step] { kill_point("save", step); });
    return;
  }
  const SaveResult result = store_->save(step, parts, manifest);
  kill_point("save", step);
  note(result);
}

bool RunSaver::poll() {
  const std::optional<SaveResult> result = background_.poll();
  if (result) note(*result);
  return result.has_value();
}

bool RunSaver::finish() {
  const std::optional<SaveResult> result = background_.wait();
  if (result) note(*result);
  return result.has_value();
}

void RunSaver::note(const SaveResult& result) {
  for (const std::string& warning : result.warnings) log_warning(warning);
  last_step_ = asked_;
  last_time_ = static_cast<std::int64_t>(std::time(nullptr));
}

// The last checkpoint of each stage and the best one are kept regardless of `keep`. What is unpinned here is removed after this
// save, once the store has verified it.
void RunSaver::pin(const Position& position) {
  const bool best = best_ && position.best_step == position.global_step;
  if (!best_ && pinned_best_ >= 0) store_->unpin(std::exchange(pinned_best_, -1));  // a resume turned checkpoint.best off
  if (best || position.stage_done) store_->pin(position.global_step);
  if (best && pinned_best_ >= 0 && pinned_best_ != position.global_step) store_->unpin(pinned_best_);
  if (best) pinned_best_ = position.stage_done ? -1 : position.global_step;  // a stage's end stays pinned
  if (!best || !newest_best_only_) return;
  for (const std::int64_t step : std::exchange(earlier_bests_, {})) store_->unpin(step);
}

}  // namespace tessera

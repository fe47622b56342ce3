// What a session says when a step fails: where it happened, and how to go on.
#include "core/device/device_info.h"
#include "core/storage.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/text.h"
#include "train/run/memory_advice.h"
#include "train/run/nan_replay.h"
#include "train/run/session.h"

namespace tessera {
namespace {

// Bytes that tensors may take together; 0 where nobody knows. The driver and its libraries keep some of a GPU's memory.
std::size_t capacity_of(Device device) {
  const std::size_t limit = memory_stats(device).limit;
  if (limit > 0 || device.is_cpu()) return limit;
  const std::size_t memory = device_info(device).memory;
  return memory - memory / 16;
}

}  // namespace

std::string Session::explain(const std::string& found) {
  try {
    finish_saving();
    state_.trainer()->forget_recording();  // the replay needs its memory
    RunState again(config(), state_.data());
    if (saver_.store().empty()) {
      again.start(initial_model(vfs_, config(), state_.data()));
    } else {
      again.load(saver_.store().load_latest());
    }
    const std::int64_t until = state_.position().global_step;
    progress_.line(str(found, "; replaying steps ", again.position().global_step + 1, " to ", until, " with every op checked"));
    return name_first_bad_op(again, until, found, options_.stop);
  } catch (const std::exception& error) {
    return str(found, "; the replay that names the first bad op failed: ", error.what());
  }
}

std::string Session::smaller_step(const OutOfMemoryError& found) {
  try {
    finish_saving();
    // The plan takes steps, for which a starved process has no room; libraries then crash.
    if (!found.at_limit()) return "; train with a smaller micro_batch, or give the process more memory";
    const auto capacity = static_cast<std::int64_t>(capacity_of(state_.device()));
    if (capacity == 0) return "";
    state_.trainer()->forget_recording();
    const std::optional<std::int64_t> fits =
        largest_micro_batch(state_.model(), config(), stage().training, state_.data(), capacity, state_.hooks_of_stage());
    if (!fits) return "; no smaller micro_batch is expected to fit";
    return str("; micro_batch ", *fits, " is expected to fit", way_on(str("micro_batch=", *fits)));
  } catch (const std::exception& error) {  // the memory is what ended the run
    log_warning(error.what());
    return "";
  }
}

std::string Session::way_on(const std::string& change) const {
  if (saver_.last_step() < 0) return str("; there is no checkpoint yet: train again with, say, ", change);
  const std::int64_t good = saver_.last_step();
  return str("; step ", good, " was good: tessera fork ", shell_word(folder_.path()), " --at ", good, ' ', change);
}

}  // namespace tessera

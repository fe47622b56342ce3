#include "train/run/nan_replay.h"

#include "core/autograd/numeric_check.h"
#include "core/support/error.h"

namespace tessera {
namespace {

// A run that was saved at the end of a stage went on with the next stage.
void begin(RunState& state) {
  if (state.position().stage_done) state.next_stage();
  state.prepare_stage();
  state.begin_training();
}

}  // namespace

std::string name_first_bad_op(RunState& state, std::int64_t until, const std::string& found, const StopRequest& stop,
                              std::string_view why_none) {
  begin(state);
  const std::int64_t first = state.position().global_step + 1;
  const NumericCheck check;
  while (state.position().global_step < until) {
    const std::int64_t step = state.position().global_step + 1;
    if (state.position().stage_step == state.stage_steps()) {
      return str(found, "; the newest good checkpoint is of the earlier stage ", state.stage().name,
                 ", and the replay that names the first bad op does not cross a stage's end");
    }
    if (stop.requested()) return str(found, "; the replay that names the first bad op was stopped before step ", step);
    try {
      state.step();
    } catch (const NumericError& error) {
      return str("training: stage ", state.stage().name, ", step ", step, " (lr ", state.trainer()->last_lr(),
                 "): ", error.what());
    }
  }
  return str(found, "; the replay of steps ", first, " to ", until, " with every op checked made no NaN or Inf: ", why_none);
}

}  // namespace tessera

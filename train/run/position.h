// Where a run stands, between two steps. Part of every checkpoint.
#pragma once

#include <cstdint>
#include <optional>

#include "core/config/fields.h"
#include "train/tasks/metric.h"

namespace tessera {

struct Position {
  std::int64_t stage = 0;  // index into stages
  std::int64_t stage_step = 0;  // optimiser steps done in this stage
  std::int64_t global_step = 0;  // over all stages; a pass counts as one
  bool stage_ready = false;  // the stage's passes have run
  bool stage_done = false;  // the stage's last step is done
  std::int64_t metrics_bytes = 0;
  std::int64_t timing_bytes = 0;
  std::optional<Scored> best = {};  // of the task's first metric on val in this stage; empty before the first
  std::int64_t best_step = -1;

  void fields(Fields& f) {
    f.add("stage", stage, {.help = "stage index", .range = non_negative});
    f.add("stage_step", stage_step, {.help = "steps done in the stage", .range = non_negative});
    f.add("global_step", global_step, {.help = "steps done in the run", .range = non_negative});
    f.add("stage_ready", stage_ready, {.help = "the stage's passes have run"});
    f.add("stage_done", stage_done, {.help = "the stage's last step is done"});
    f.add("metrics_bytes", metrics_bytes, {.help = "length of metrics.jsonl", .range = non_negative});
    f.add("timing_bytes", timing_bytes, {.help = "length of timing.jsonl", .range = non_negative});
    add_scored(f, "best_", best, {.help = "best value on val"});
    f.add("best_step", best_step, {.help = "its checkpoint"});
    if (best_step < 0) best.reset();  // older programs wrote -1 for both
  }
};

}  // namespace tessera

// How much disk the checkpoints of a run will take.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/fields.h"
#include "core/nn/module.h"
#include "train/experiment.h"
#include "train/run/history.h"
#include "train/run/stage_results.h"
#include "train/run/teachers.h"

namespace tessera {

// Checkpoints of one stage: how large, and how many stay when the run has ended.
struct DiskPlan {
  std::int64_t training_bytes = 0;  // one saved while the stage trains; 0 when it does not train
  std::int64_t end_bytes = 0;  // the one at the stage's end, which always stays
  std::int64_t best = 0;  // 1 when the best one is kept too and may be another than the last
  // With checkpoint.keep_best: run, 1 in the stage with the largest best checkpoint that a later stage's replaces. It stays on
  // disk until the later one is written.
  std::int64_t replaced = 0;
  std::int64_t newest = 0;  // of the newest `checkpoint.keep` that are neither, at most this many are of this stage

  std::int64_t bytes() const { return end_bytes + (best + replaced + newest) * training_bytes; }
  void fields(Fields& f);
};

// Bytes of a stage's checkpoints: the same parts as a session saves, encoded and counted, not written. Exact except for the
// digits of counters in the manifest, the choices that a clock will take (about 100 bytes each), and an ADMM stage's residuals
// (about 150 bytes an update). `newest` is left to plan_kept.
// `data_keys` are manifest_keys() of the data. `history` is given as it is once the pass of the stage `index` has run, and
// `teachers` as the stage has them. Both are brought to the stage's end.
DiskPlan plan_checkpoint(Module& model, const ExperimentConfig& config, std::size_t index, const StageResults& results,
                         Teachers& teachers, const Value& data_keys, RunHistory& history);

// Fills best, replaced and newest of all stages, from the last stage back. steps[i] is 0 for a stage that does not train.
void plan_kept(std::vector<DiskPlan>& stages, const std::vector<std::int64_t>& steps, const CheckpointConfig& config,
               std::int64_t steps_per_epoch, bool validates);

}  // namespace tessera

// How much memory a training step will need, found by dry steps at small batch sizes.
#pragma once

#include <cstdint>
#include <span>

#include "core/config/fields.h"
#include "core/device/decisions.h"
#include "core/nn/module.h"
#include "train/data/builtin.h"
#include "train/experiment.h"
#include "train/run/stage_hooks.h"

namespace tessera {

// Bytes of the device's memory at the highest point of a training step, by what they are. Where the device is a GPU, data sets
// and snapshots are in the host's memory and count 0. Libraries' own memory and the program's text are not in it.
struct MemoryPlan {
  std::int64_t data_set = 0;  // pixels and labels of all splits
  std::int64_t loader = 0;  // batches held ahead, and the one in use; on a GPU also the one that a recorded step reads
  std::int64_t weights = 0;  // parameters, masks and buffers; on a CPU also the pairs of sparse attention
  std::int64_t optimizer = 0;  // its state
  std::int64_t hooks = 0;  // moving averages, low-rank copies and dual variables, teachers
  std::int64_t snapshot = 0;  // the copy that an asynchronous save writes
  std::int64_t gradients = 0;  // of all trainable parameters; 0 where StageTrainer::updates_early() without micro-batches
  std::int64_t activations = 0;  // saved for backward, of one micro-batch
  std::int64_t temporaries = 0;  // the rest of the step; negative when gradients and activations are not all alive at once

  std::int64_t peak() const {
    return data_set + loader + weights + optimizer + hooks + snapshot + gradients + activations + temporaries;
  }
  void fields(Fields& f);
};

// Takes real steps of a copy of the model, with micro-batches of one or two sizes up to kDrySamples, records the bytes in use
// after each allocation, and extrapolates every one of them linearly to the micro-batch; the peak is the highest. Exact, on the
// CPU, but for rounding to cache lines, unless a library chooses another algorithm for another size. Where a clock will choose
// how each convolution runs, the peak is that of the offered way which takes most memory when all convolutions run in it. A run
// whose clock chooses other ways takes less; seldom, a run with a mixture of ways takes more, 36 % in the worst seen.
// `choices`, of a run (train/run/decisions_file.h), are taken in place of all that, and what they lack is measured: the step is
// then one of a whole micro-batch, because choices are of one size each. `hooks`: those of the stage beside the ones of
// `training`; `teachers`: bytes of the networks that are kept to teach. Validation between epochs is not counted, nor is what
// hooks do between steps.
inline constexpr std::int64_t kDrySamples = 32;
MemoryPlan plan_memory(Module& model, const ExperimentConfig& config, const TrainingConfig& training, const DataSplits& data,
                       std::span<const MakeHook> hooks = {}, std::int64_t teachers = 0, const DecisionMap* choices = nullptr);

}  // namespace tessera

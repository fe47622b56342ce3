#include "train/run/failure_advice.h"

#include <algorithm>

#include "core/device/device_info.h"
#include "core/storage.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/text.h"
#include "train/run/memory_advice.h"
#include "train/run/nan_replay.h"

namespace tessera {
namespace {

// Bytes that tensors may take in total; 0 if unknown. 1/16 of a GPU's memory is left to the driver and its libraries.
std::size_t capacity_of(Device device) {
  const std::size_t limit = memory_stats(device).limit;
  if (limit > 0 || device.is_cpu()) return limit;
  const std::size_t memory = device_info(device).memory;
  return memory - memory / 16;
}

// Samples that a rank computes at once.
std::int64_t micro_batch_of_rank(const RunContext& run, const TrainingConfig& training) {
  const std::int64_t share = run.config().data.batch / run.options.ranks->size();
  return std::min(training.micro_batch.value_or(share), share);
}

// The config for a replay in this process alone. Its micro-batches are those of one rank, or of all ranks together if batch norms
// see the samples of all ranks at once.
ExperimentConfig config_of_replay(const RunContext& run) {
  ExperimentConfig config = run.config();
  const std::int64_t ranks = run.options.ranks->size();
  if (ranks == 1) return config;
  for (StageConfig& stage : config.stages) {
    TrainingConfig& training = stage.training;
    training.micro_batch = micro_batch_of_rank(run, training) * (training.sync_batch_norm.value_or(false) ? ranks : 1);
  }
  return config;
}

const char* why_no_nan(const RunContext& run) {
  return run.options.ranks->size() == 1 ? "this machine does not repeat its own numbers, check its memory"
                                        : "this process alone may round otherwise than the run's ranks together; if it should "
                                          "not, a machine does not repeat its own numbers, check its memory";
}

}  // namespace

std::string explain_numeric_error(RunContext& run, const std::string& found) {
  try {
    run.finish_saving();
    run.state.trainer()->forget_recording();  // the replay needs its memory
    RunState again(config_of_replay(run), run.state.data());
    if (run.saver.store().empty()) {
      again.start(initial_model(run.vfs, run.config(), run.state.data()));
    } else {
      again.load(run.saver.store().load_latest());
    }
    const std::int64_t until = run.state.position().global_step;
    run.progress.line(
        str(found, "; replaying steps ", again.position().global_step + 1, " to ", until, " with every op checked"));
    return name_first_bad_op(again, until, found, run.options.stop, why_no_nan(run));
  } catch (const std::exception& error) {
    return str(found, "; the replay that names the first bad op failed: ", error.what());
  }
}

std::string smaller_step(RunContext& run, const OutOfMemoryError& found) {
  try {
    run.finish_saving();
    // The plan takes real steps. A starved process has no room for them, and libraries then crash.
    if (!found.at_limit()) return "; train with a smaller micro_batch, or give the process more memory";
    const auto capacity = static_cast<std::int64_t>(capacity_of(run.state.device()));
    if (capacity == 0) return "";
    run.state.trainer()->forget_recording();
    ExperimentConfig config = run.config();
    config.data.batch /= run.options.ranks->size();  // the share of one process
    TrainingConfig training = run.stage().training;
    training.micro_batch = micro_batch_of_rank(run, training);
    const std::optional<std::int64_t> fits = largest_micro_batch(run.state.model(), config, training, run.state.data(), capacity,
                                                                 run.state.hooks_of_stage(), run.state.teachers().bytes());
    if (!fits) return "; no smaller micro_batch is expected to fit";
    return str("; micro_batch ", *fits, " is expected to fit", way_on(run, str("micro_batch=", *fits)));
  } catch (const std::exception& error) {  // the run ended for lack of memory, which is the error to report
    log_warning(error.what());
    return "";
  }
}

std::string way_on(const RunContext& run, const std::string& change) {
  if (!run.options.advise) return "";
  if (run.saver.last_step() < 0) return str("; there is no checkpoint yet: train again with, say, ", change);
  const std::int64_t good = run.saver.last_step();
  return str("; step ", good, " was good: tessera fork ", shell_word(run.folder.path()), " --at ", good, ' ', change);
}

}  // namespace tessera

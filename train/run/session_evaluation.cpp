// A session's look at the validation split, between epochs.
#include "core/support/text.h"
#include "train/run/compute_dtype.h"
#include "train/run/evaluate.h"
#include "train/run/session.h"

namespace tessera {

bool Session::evaluate_epoch() {
  Position& position = state_.position();
  bool improved = false;
  const std::int64_t epoch = position.stage_step / state_.steps_per_epoch();
  std::string text = str(stage().name, " epoch ", epoch);
  if (last_loss_) text += str("  loss ", *last_loss_);
  const DataSplits& data = state_.data();
  if (data.val.size() > 0) {
    Loader loader(data.val, evaluation_options(config().data.batch, data.normalization, static_cast<int>(config().threads.loader),
                                               state_.device()));
    state_.trainer()->check_finite();  // between two log lines nothing else has looked
    Evaluation result;
    state_.trainer()->with_evaluation_weights([&] { result = evaluate(state_.model(), loader, compute_dtype_of(config())); });
    records_->log_evaluation(stage().name, position.global_step, epoch, result);
    last_accuracy_ = result.accuracy();
    improved = result.accuracy() > position.best_accuracy;
    if (improved) {
      position.best_accuracy = result.accuracy();
      position.best_step = position.global_step;
    }
    text += str("  val accuracy ", percent(result.accuracy()));
  }
  if (const std::string hooks = state_.trainer()->hook_summary(); !hooks.empty()) {
    text += str("  ", hooks,
                formatted(" (updates: %.1f %% of the time)", 100 * state_.trainer()->hook_seconds() / progress_.seconds()));
  }
  progress_.line(text + formatted("  %.0f img/s", progress_.samples_per_second(position.stage_step)));
  return improved;
}

}  // namespace tessera

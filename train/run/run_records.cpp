#include "train/run/run_records.h"

namespace tessera {

RunRecords::RunRecords(Vfs& vfs, RunFolder folder, const Position& position, RunHistory history)
    : vfs_(vfs),
      folder_(std::move(folder)),
      history_(std::move(history)),
      metrics_(folder_.metrics(), position.metrics_bytes),
      timing_(folder_.timing(), position.timing_bytes) {}

void RunRecords::log_training(const std::string& stage, std::int64_t step, double loss, double lr, double images_per_second) {
  Value row = Value::map();
  row.set("stage", stage);
  row.set("step", step);
  row.set("loss", loss);
  row.set("lr", lr);
  metrics_.append(row);
  Value clock = Value::map();
  clock.set("step", step);
  clock.set("images_per_second", images_per_second);
  timing_.append(clock);
}

void RunRecords::log_evaluation(const std::string& stage, std::int64_t step, std::int64_t epoch, const Evaluation& result) {
  Value row = Value::map();
  row.set("stage", stage);
  row.set("step", step);
  row.set("epoch", epoch);
  row.set("val_loss", result.loss);
  row.set("val_accuracy", result.accuracy());
  metrics_.append(row);
}

void RunRecords::sync(Position& position) {
  metrics_.sync();
  timing_.sync();
  position.metrics_bytes = metrics_.length();
  position.timing_bytes = timing_.length();
}

void RunRecords::write_status(const RunStatus& status) { save_status(vfs_, folder_.status(), status); }

void RunRecords::write_layers() {
  if (has_layers(history_)) write_file_atomically(vfs_, folder_.layers(), layers_csv(history_));
}

void RunRecords::write_report(const std::string& name, std::int64_t seed) {
  if (history_.any_done()) write_file_atomically(vfs_, folder_.report(), report_markdown(name, seed, history_));
}

}  // namespace tessera

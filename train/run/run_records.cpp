#include "train/run/run_records.h"

#include "core/config/read.h"
#include "core/support/error.h"

namespace tessera {
namespace {

// A line of metrics.jsonl.
struct TrainingLine {
  std::string stage;
  std::int64_t step = 0;
  double loss = 0;
  double lr = 0;

  void fields(Fields& f) {
    f.add("stage", stage, {.help = "its name"});
    f.add("step", step, {.help = "of the run"});
    f.add("loss", loss, {.help = "mean since the line before"});
    f.add("lr", lr, {.help = "learning rate of the step"});
  }
};

// A line of timing.jsonl, whose values differ from run to run.
struct TimingLine {
  std::int64_t step = 0;
  double samples_per_second = 0;

  void fields(Fields& f) {
    f.add("step", step, {.help = "of the run"});
    f.add("samples_per_second", samples_per_second, {.help = "since the line before"});
  }
};

}  // namespace

RunRecords::RunRecords(Vfs& vfs, RunFolder folder, const Position& position, RunHistory history)
    : vfs_(vfs),
      folder_(std::move(folder)),
      history_(std::move(history)),
      metrics_(folder_.metrics(), position.metrics_bytes),
      timing_(folder_.timing(), position.timing_bytes) {}

void RunRecords::log_training(const std::string& stage, std::int64_t step, double loss, double lr, double samples_per_second) {
  metrics_.append(write(TrainingLine{stage, step, loss, lr}));
  timing_.append(write(TimingLine{step, samples_per_second}));
}

void RunRecords::log_rows(const std::string& stage, std::int64_t step, const std::vector<Value>& rows) {
  for (const Value& row : rows) {
    Value line = Value::map();
    line.set("stage", stage);
    line.set("step", step);
    for (const auto& entry : row.as_map()) line.set(entry.key, entry.value);
    metrics_.append(line);
  }
}

void RunRecords::log_evaluation(const std::string& stage, std::int64_t step, std::int64_t epoch, const Task& task,
                                const Evaluation& result) {
  Value line = Value::map();
  line.set("stage", stage);
  line.set("step", step);
  line.set("epoch", epoch);
  line.set("val_loss", result.loss);
  for (std::size_t i = 0; i < result.metrics.size(); ++i) line.set(str("val_", task.metrics()[i].key), result.metrics[i]);
  metrics_.append(line);
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

void RunRecords::write_report(const std::string& name, std::int64_t seed, const Metric& metric) {
  if (history_.any_done()) write_file_atomically(vfs_, folder_.report(), report_markdown(name, seed, metric, history_));
}

}  // namespace tessera

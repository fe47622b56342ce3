// The files of a run folder that grow or change while it trains: metrics, timing, status, layers and report.
#pragma once

#include <string>

#include "core/io/vfs.h"
#include "train/run/evaluate.h"
#include "train/run/history.h"
#include "train/run/json_lines.h"
#include "train/run/position.h"
#include "train/run/run_folder.h"
#include "train/run/status.h"
#include "train/tasks/task.h"

namespace tessera {

class RunRecords {
 public:
  // Cuts metrics and timing back to the position's lengths; throws IoError when they are shorter.
  RunRecords(Vfs& vfs, RunFolder folder, const Position& position, RunHistory history);

  void log_training(const std::string& stage, std::int64_t step, double loss, double lr, double samples_per_second);
  void log_rows(const std::string& stage, std::int64_t step, const std::vector<Value>& rows);  // of hooks
  void log_evaluation(const std::string& stage, std::int64_t step, std::int64_t epoch, const Task& task,
                      const Evaluation& result);
  // Makes metrics and timing durable, and notes their lengths: a checkpoint counts on these bytes.
  void sync(Position& position);
  void write_status(const RunStatus& status);
  void write_layers();  // nothing before the first pass
  void write_report(const std::string& name, std::int64_t seed, const Metric& metric);  // nothing before the first stage's end

  RunHistory& history() noexcept { return history_; }

 private:
  Vfs& vfs_;
  RunFolder folder_;
  RunHistory history_;
  JsonLines metrics_;
  JsonLines timing_;
};

}  // namespace tessera

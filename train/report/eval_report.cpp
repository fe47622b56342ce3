#include "train/report/eval_report.h"

#include "train/report/saved_run.h"
#include "train/run/position.h"
#include "train/run/saved_model.h"
#include "train/tasks/builtin.h"

namespace tessera {
EvalReport evaluate_run(Vfs& vfs, const RunFolder& run, const EvalOptions& options) {
  const SavedRun saved = open_saved_run(vfs, run, options.at, options.overrides, "eval");
  const Subset split = split_of(saved.data, options.split, "eval");
  EvalReport report;
  report.run = run.path();
  report.stage = saved.checkpoint.manifest.at("stage_name").as_string();
  report.step = saved.checkpoint.step;
  report.stage_done = read<Position>(saved.checkpoint.manifest.at("position")).stage_done;
  report.averaged = has_averages(saved.checkpoint);
  report.split = options.split;
  report.details = task_of(saved.config.data).details(split, options.details);
  report.total = evaluate_split(*saved.model, split, saved.config, report.details.get());
  return report;
}

}  // namespace tessera

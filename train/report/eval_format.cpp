#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/eval_report.h"

namespace tessera {
namespace {

std::string where(const EvalReport& report) {
  return str(report.run, ": stage ", report.stage, report.stage_done ? ", its end (step " : ", step ", report.step,
             report.stage_done ? ")" : "", report.averaged ? ", moving averages" : "");
}

}  // namespace

std::string to_text(const EvalReport& report) {
  return str(where(report), "; split ", report.split, ", ", report.total.samples, " samples\nloss ",
             formatted("%.6g", report.total.loss), "  ", report.details->summary(), "\n\n", report.details->text());
}

void EvalReport::fields(Fields& f) {
  f.add("run", run, {.help = "its folder"});
  f.add("stage", stage, {.help = "of the checkpoint"});
  f.add("step", step, {.help = "of the checkpoint"});
  f.add("stage_done", stage_done, {.help = "the checkpoint is the stage's end"});
  f.add("averaged", averaged, {.help = "moving averages of the weights were evaluated"});
  f.add("split", split, {.help = "evaluated samples", .choices = {"train", "val", "test"}});
  f.add("samples", total.samples, {.help = "of the split"});
  f.add("loss", total.loss, {.help = "mean of the task's loss"});
}

Value to_value(const EvalReport& report) {
  Value value = write(report);
  const Value details = report.details->keys();
  for (const Value::Entry& entry : details.as_map()) value.set(entry.key, entry.value);
  return value;
}

}  // namespace tessera

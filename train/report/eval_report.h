// How well a saved network does on one split: the content of `tessera eval`. docs/eval.md defines every number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/io/vfs.h"
#include "train/run/evaluate.h"
#include "train/run/run_folder.h"
#include "train/tasks/task.h"

namespace tessera {

struct EvalOptions {
  std::string split = "test";  // or val, train; never augmented
  std::string at;  // a stage's end, a step, or "best": the best validation metric of the newest stage that has one; "" = newest
  std::vector<std::string> overrides;  // key=value of what cannot change what was learnt
  DetailOptions details = {};
};

struct EvalReport {
  std::string run;
  std::string stage;
  std::int64_t step = 0;
  bool stage_done = false;  // the checkpoint is the stage's end
  bool averaged = false;  // the moving averages of a stage under way were evaluated, as the run itself does
  std::string split;
  Evaluation total;
  std::shared_ptr<TaskDetails> details;  // what the run's task tells of the split

  void fields(Fields& f);
};

// Rebuilds the network from the checkpoint alone and runs the split through it once. Throws ConfigError on a checkpoint that
// does not exist, on overrides of any other key, on data that is missing or not the run's, on an empty split; IoError on a
// checkpoint that is damaged, when it was asked for by name. A damaged newest one is passed over with a warning.
EvalReport evaluate_run(Vfs& vfs, const RunFolder& run, const EvalOptions& options);

std::string to_text(const EvalReport& report);
Value to_value(const EvalReport& report);

}  // namespace tessera

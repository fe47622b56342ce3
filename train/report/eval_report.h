// How well a saved network does on one split, class by class: the content of `tessera eval`. docs/eval.md defines every number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/io/vfs.h"
#include "train/run/evaluate.h"
#include "train/run/run_folder.h"

namespace tessera {

struct EvalOptions {
  std::string split = "test";  // or val, train; never augmented
  std::string at;  // a stage's end, a step, or "best": the best validation accuracy of the newest stage that has one; "" = newest
  std::vector<std::string> overrides;  // key=value of what cannot change what was learnt
  bool predictions = false;  // keep a row per sample
  bool probabilities = false;  // with the probability of every class
};

struct EvalReport {
  std::string run;
  std::string stage;
  std::int64_t step = 0;
  bool stage_done = false;  // the checkpoint is the stage's end
  bool averaged = false;  // the moving averages of a stage under way were evaluated, as the run itself does
  std::string split;
  Evaluation total;
  std::optional<std::int64_t> top5;  // samples whose class is among the five likeliest; empty below ten classes
  std::vector<std::string> classes;
  std::vector<std::int64_t> confusion;  // [true class][predicted class]
  std::string predictions;  // CSV, when asked for

  std::int64_t count(std::size_t truth, std::size_t predicted) const { return confusion[truth * classes.size() + predicted]; }
  std::int64_t samples_of(std::size_t truth) const;
  void fields(Fields& f);
};

// Rebuilds the network from the checkpoint alone and runs the split through it once. Throws ConfigError on a checkpoint that
// there is not, on overrides of any other key, on data that is missing or not the run's, on an empty split; IoError on a
// checkpoint that is damaged, when it was asked for by name. A damaged newest one is passed over with a warning.
EvalReport evaluate_run(Vfs& vfs, const RunFolder& run, const EvalOptions& options);

std::string to_text(const EvalReport& report);
std::string confusion_csv(const EvalReport& report);
Value to_value(const EvalReport& report);

}  // namespace tessera

// A dry run of an experiment, in a temporary folder: two steps of every stage, its passes in full, a save, a reload that
// must give back every byte, and the table. The content of `tessera validate --smoke`.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "train/experiment.h"
#include "train/run/run_inputs.h"
#include "train/run/stop.h"

namespace tessera {

struct SmokeStage {
  std::string name;
  std::string passes;  // what the passes did; empty without one
  std::int64_t steps = 0;  // taken: two, or all there are
  std::int64_t stage_steps = 0;  // of the stage in a real run
  std::optional<double> loss{};  // mean over the steps
  std::int64_t tensors = 0;  // of the checkpoint, equal after the reload
  std::int64_t checkpoint_bytes = 0;  // of these tensors
  double seconds = 0;

  void fields(Fields& f);
};

struct SmokeReport {
  std::vector<SmokeStage> stages;  // gone through
  std::int64_t table_rows = 0;  // 0 before the table
  double table_seconds = 0;
  std::string where;  // of the first failure: "stage small, reload"; empty when there was none
  std::string failure;
  bool bad_input = false;  // the failure is a ConfigError
  bool stopped = false;  // on request

  bool ok() const { return where.empty() && !stopped; }
  void fields(Fields& f);
};

// `inputs` are the experiment's. Nothing is written outside the folder, which is gone on return. Prints a line per stage to `out`
// when it is not null. Sets the number of compute threads.
SmokeReport smoke(const Experiment& experiment, RunInputs inputs, const StopRequest& stop, std::ostream* out);

Value to_value(const SmokeReport& report);

}  // namespace tessera

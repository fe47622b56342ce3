// status.json: what `tessera status` shows. Replaced atomically, so that a reader never sees half of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/config/fields.h"
#include "core/io/vfs.h"
#include "train/tasks/builtin.h"

namespace tessera {

struct RunStatus {
  std::string state;  // training, stopped, finished, failed
  std::string stage;
  std::int64_t stage_step = 0;
  std::int64_t stage_steps = 0;
  std::int64_t global_step = 0;
  std::optional<double> loss = {};  // empty before the first that the stage logs
  std::string metric{usual_metric().key};  // the first of the run's task
  std::optional<double> best = {};  // of it on val in this stage; empty before the first evaluation
  double seconds_left = 0;
  std::int64_t last_checkpoint_step = -1;
  std::int64_t last_checkpoint_time = 0;  // seconds since 1970, as are the others
  std::int64_t time = 0;
  std::string host;
  std::int64_t pid = 0;  // of rank 0
  std::int64_t ranks = 1;  // that train together

  void fields(Fields& f);
};

void save_status(Vfs& vfs, const std::string& path, RunStatus status);  // fills time, host and pid
RunStatus load_status(Vfs& vfs, const std::string& path);

// Whether this host wrote it; of another host's processes nothing is known here.
bool is_local(const RunStatus& status);
// The process that wrote it still runs on this host. A local run that says "training" while this is false was killed.
bool is_alive(const RunStatus& status);
// The state as of now. A run that was killed could not say so itself: "killed". A run on another host that says "training" may
// go on or not: "unknown".
std::string state_now(const RunStatus& status);

}  // namespace tessera

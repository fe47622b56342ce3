#include "train/run/status.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/host.h"

namespace tessera {
void RunStatus::fields(Fields& f) {
  f.add("state", state, {.help = "what the run is doing", .choices = {"training", "stopped", "finished", "failed"}});
  f.add("stage", stage, {.help = "stage name"});
  f.add("stage_step", stage_step, {.help = "steps done in the stage"});
  f.add("stage_steps", stage_steps, {.help = "steps of the stage"});
  f.add("global_step", global_step, {.help = "steps done in the run"});
  f.add("loss", loss, {.help = "last logged loss of the stage; null before the first", .nullable = true});
  f.add(str("best_", metric), best, {.help = "best value on val in the stage; null before the first", .nullable = true});
  f.add("seconds_left", seconds_left, {.help = "of the stage"});
  f.add("last_checkpoint_step", last_checkpoint_step, {.help = "global step of the newest checkpoint"});
  f.add("last_checkpoint_time", last_checkpoint_time, {.help = "when it was written"});
  f.add("time", time, {.help = "when this file was written"});
  f.add("host", host, {.help = "machine"});
  f.add("pid", pid, {.help = "process number; with several ranks that of rank 0"});
  f.add("ranks", ranks, {.help = "processes that train together"});
}

void save_status(Vfs& vfs, const std::string& path, RunStatus status) {
  status.time = static_cast<std::int64_t>(std::time(nullptr));
  status.host = host_name();
  status.pid = getpid();
  write_file_atomically(vfs, path, to_json(write(status), 2) + "\n");
}

RunStatus load_status(Vfs& vfs, const std::string& path) {
  const Value value = parse_json(vfs.read_file(path), path);
  RunStatus status;
  for (const Task* task : builtin_tasks()) {
    const std::string key(task->metrics().front().key);
    if (value.find("best_" + key) != nullptr) status.metric = key;
  }
  std::vector<ConfigProblem> problems;
  read(value, status, "", problems);
  if (!problems.empty()) throw_config_error(problems);
  return status;
}

bool is_local(const RunStatus& status) { return status.host == host_name(); }

bool is_alive(const RunStatus& status) {
  if (!is_local(status) || status.pid <= 0) return false;
  return kill(static_cast<pid_t>(status.pid), 0) == 0 || errno == EPERM;
}

std::string state_now(const RunStatus& status) {
  if (status.state != "training" || is_alive(status)) return status.state;
  return is_local(status) ? "killed" : "unknown";
}

}  // namespace tessera

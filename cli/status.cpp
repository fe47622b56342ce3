#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <thread>

#include "cli/verbs.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "train/run/progress.h"
#include "train/run/run_folder.h"
#include "train/run/status.h"
#include "train/tasks/builtin.h"

namespace tessera::cli {
namespace {

struct StatusArguments {
  std::string run;
  bool watch = false;
  bool json = false;
};

std::string sentence(const RunStatus& status) {
  std::string text =
      str(status.state, "  stage ", status.stage, "  step ", status.stage_step, '/', status.stage_steps);
  if (status.loss) text += str("  loss ", *status.loss);
  if (status.best) text += str("  best val ", text_of(metric_of(status.metric), *status.best));
  if (status.state == "training") text += str("  ETA of the stage ", format_seconds(status.seconds_left));
  if (status.last_checkpoint_step >= 0) {
    text += str("  checkpoint at step ", status.last_checkpoint_step, ", ",
                format_seconds(static_cast<double>(std::time(nullptr) - status.last_checkpoint_time)), " ago");
  } else {
    text += "  no checkpoint yet";
  }
  const std::string ranks = status.ranks > 1 ? str(", ", status.ranks, " ranks") : "";
  return text + str("  (", status.host, ", pid ", status.pid, ranks, ")");
}

int show(const StatusArguments& arguments) {
  const RunFolder folder = RunFolder::open(real_vfs(), arguments.run);
  for (;;) {
    RunStatus status = load_status(real_vfs(), folder.status());
    status.state = state_now(status);
    std::cout << (arguments.json ? to_json(write(status), 2) : sentence(status)) << std::endl;
    if (!arguments.watch || status.state != "training") return kDone;
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
}

}  // namespace

void add_status(Verb program) {
  const Verb verb = program.add("status", "Show where a run stands");
  auto arguments = std::make_shared<StatusArguments>();
  verb.argument("run", arguments->run, "run folder").required();
  verb.flag("--watch", arguments->watch, "repeat every two seconds until the run ends");
  verb.flag("--json", arguments->json, "for another program to read");
  verb.footer("Example: tessera status runs/quickstart/1 --watch");
  verb.runs([arguments] { return show(*arguments); });
}

}  // namespace tessera::cli

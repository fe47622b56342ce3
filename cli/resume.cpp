#include <iostream>
#include <memory>

#include "cli/ranks.h"
#include "cli/running.h"
#include "train/config/overrides.h"
#include "train/resolve_device.h"
#include "train/run/amend.h"
#include "train/run/fork.h"

namespace tessera::cli {
namespace {

struct ResumeArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::string time_limit;
  std::string profile;
};

// The run stores the device that "auto" came to, so this is where it is said.
void tell_device(const std::vector<std::string>& overrides) {
  Value asked = Value::map();
  for (const std::string& word : overrides) {
    if (word.starts_with("device=")) apply_override(asked, word);
  }
  const Value* const device = asked.find("device");
  if (device == nullptr || device->kind() != Value::Kind::string) return;  // what is wrong with it is said later
  const std::string choice = choice_of_device(device->as_string());
  if (!choice.empty()) std::cout << choice << std::endl;
}

int resume(const ResumeArguments& arguments) {
  install_stop_signals();
  const StopRequest stop = stop_after(arguments.time_limit);
  if (ranks().rank() > 0) return follow(stop);
  const SessionOptions options = session_options(stop, arguments.profile);
  const RunFolder folder = RunFolder::open(real_vfs(), arguments.run);
  tell_device(arguments.overrides);
  if (!arguments.overrides.empty()) amend_run(real_vfs(), folder, arguments.overrides, ranks());
  return finish(Session::resume(real_vfs(), folder, options));
}

struct ForkArguments {
  std::string run;
  std::string at;
  std::vector<std::string> overrides;
  std::string runs;
  std::string time_limit;
  std::string profile;
};

int fork(const ForkArguments& arguments) {
  install_stop_signals();
  const SessionOptions options = session_options(stop_after(arguments.time_limit), arguments.profile);
  const RunFolder parent = RunFolder::open(real_vfs(), arguments.run);
  tell_device(arguments.overrides);
  const RunFolder folder = fork_run(real_vfs(), parent, arguments.at, arguments.overrides, runs_folder(arguments.runs));
  std::cout << "run folder: " << folder.path() << std::endl;
  return finish(Session::resume(real_vfs(), folder, options));
}

}  // namespace

void add_resume(Verb program) {
  const Verb verb = program.add("resume", "Go on with a run from its newest checkpoint");
  auto arguments = std::make_shared<ResumeArguments>();
  verb.argument("run", arguments->run, "run folder, runs/<name>/<n>").required();
  verb.argument(
      "overrides", arguments->overrides,
      "changes that cannot alter the past: length of stages to come, checkpointing, report, threads, device, data.root, "
      "data.on_bad_image=skip");
  verb.argument("--time-limit", arguments->time_limit, "stop and save after this time, e.g. 3h50m");
  add_profile_option(verb, arguments->profile);
  verb.footer("Example: tessera resume runs/quickstart/1");
  verb.runs_in_ranks([arguments] { return resume(*arguments); });
}

void add_fork(Verb program) {
  const Verb verb = program.add("fork", "Start a new run from a checkpoint of another, with other settings");
  auto arguments = std::make_shared<ForkArguments>();
  verb.argument("run", arguments->run, "run folder to start from").required();
  verb.argument("--at", arguments->at, "stage name (its last checkpoint) or global step").required();
  verb.argument("overrides", arguments->overrides,
                "key=value for what comes after; optimizer.lr=... reaches every stage still open");
  verb.argument("--runs", arguments->runs, "folder of the run folders (default: $TESSERA_RUNS or ./runs)");
  verb.argument("--time-limit", arguments->time_limit, "stop and save after this time, e.g. 3h50m");
  add_profile_option(verb, arguments->profile);
  verb.footer("Example: tessera fork runs/quickstart/1 --at dense 'stages[1].factorise.ranks.macs=0.3'");
  verb.runs([arguments] { return fork(*arguments); });
}

}  // namespace tessera::cli

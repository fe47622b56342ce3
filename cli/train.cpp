#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/running.h"
#include "core/error.h"
#include "train/check.h"

namespace tessera::cli {
namespace {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<std::int64_t> seeds;
  std::string runs;
  std::string time_limit;
};

// A run that cannot begin (no such data, a layer list that fits no input) leaves no folder behind.
Session begin(const TrainArguments& arguments, const Experiment& experiment, const RunFolder& folder) {
  try {
    const std::string text = real_vfs().read_file(arguments.config);
    return Session::start(real_vfs(), experiment, text, folder, session_options(arguments.time_limit));
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(folder.path(), ignored);
    std::filesystem::remove(std::filesystem::path(folder.path()).parent_path(), ignored);  // when this was its only run
    throw;
  }
}

int train_one(const TrainArguments& arguments, const std::vector<std::string>& overrides) {
  const Experiment experiment = load_experiment(arguments.config, overrides);
  check_experiment(experiment);
  const RunFolder folder = RunFolder::create(real_vfs(), runs_folder(arguments.runs), experiment.config.name);
  std::cout << "run folder: " << folder.path() << std::endl;
  return finish(begin(arguments, experiment, folder), folder.path());
}

int train(const TrainArguments& arguments) {
  install_stop_signals();
  if (arguments.seeds.empty()) return train_one(arguments, arguments.overrides);
  for (const std::int64_t seed : arguments.seeds) {
    std::vector<std::string> overrides = arguments.overrides;
    overrides.push_back(str("seed=", seed));
    if (const int code = train_one(arguments, overrides); code != kDone) return code;
  }
  return kDone;
}

}  // namespace

void add_train(CLI::App& app, Run& run) {
  auto* verb = app.add_subcommand("train", "Run an experiment file in a new run folder");
  auto arguments = std::make_shared<TrainArguments>();
  verb->add_option("config", arguments->config, "experiment file")->required();
  verb->add_option("overrides", arguments->overrides, "key=value, stages[0].train=2e, ~key to drop one");
  verb->add_option("--seeds", arguments->seeds, "one run per seed, e.g. 1,2,3")->delimiter(',')->allow_extra_args(false);
  verb->add_option("--runs", arguments->runs, "folder of the run folders (default: $TESSERA_RUNS or ./runs)");
  verb->add_option("--time-limit", arguments->time_limit, "stop and save after this time, e.g. 3h50m");
  verb->footer("Example: tessera train configs/quickstart.yaml optimizer.lr=0.05");
  verb->callback([arguments, &run] { run = [arguments] { return train(*arguments); }; });
}

}  // namespace tessera::cli

// data check: what a data set holds and what is wrong with it, before any training.
#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "core/error.h"
#include "train/data/data_check.h"
#include "train/environment.h"
#include "train/experiment.h"

namespace tessera::cli {
namespace {

struct DataArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

DataReport report_of(const ExperimentConfig& config) {
  try {
    return check_data(config.data, static_cast<std::uint64_t>(config.seed));
  } catch (const IoError& error) {  // folders that are not there are bad input, not a failed check
    throw ConfigError(str("data: ", error.what()));
  }
}

int check(const DataArguments& arguments) {
  const Experiment experiment = load_experiment(arguments.config, arguments.overrides);
  set_compute_threads(experiment.config.threads.compute);
  const DataReport report = report_of(experiment.config);
  if (arguments.json) {
    std::cout << to_json(to_value(report), 2) << '\n';
  } else {
    std::cout << to_text(report);
    if (report.clean()) std::cout << "next: tessera train " << arguments.config << '\n';
  }
  return report.clean() ? kDone : kFailed;
}

}  // namespace

void add_data(CLI::App& app, Run& run) {
  auto* verb = app.add_subcommand("data", "Look at the data of an experiment file");
  verb->require_subcommand(1);
  auto* check_verb =
      verb->add_subcommand("check", "Count classes, find files that cannot be read and images that are there twice");
  auto arguments = std::make_shared<DataArguments>();
  check_verb->add_option("config", arguments->config, "experiment file")->required();
  check_verb->add_option("overrides", arguments->overrides, "key=value, ~key to drop one");
  check_verb->add_flag("--json", arguments->json, "print the report as JSON");
  check_verb->footer(
      "Exit code 1: a file cannot be read, or an image is in two splits or under two labels.\n"
      "Example: tessera data check my-images.yaml");
  check_verb->callback([arguments, &run] { run = [arguments] { return check(*arguments); }; });
}

}  // namespace tessera::cli

// data check: what a data set holds and what is wrong with it, before any training.
#include <iostream>

#include "cli/file_verb.h"
#include "core/support/error.h"
#include "train/data/data_check.h"
#include "train/run/environment.h"

namespace tessera::cli {
namespace {

DataReport report_of(const ExperimentConfig& config) {
  try {
    return check_data(config.data, static_cast<std::uint64_t>(config.seed));
  } catch (const IoError& error) {  // folders that are not there are bad input, not a failed check
    throw ConfigError(str("data: ", error.what()));
  }
}

int check(const FileArguments& arguments) {
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

void add_data(Verb program) {
  const Verb verb = program.add("data", "Look at the data of an experiment file");
  add_file_verb(verb, "check", "Count classes, find files that cannot be read and images that are there twice", &check);
}

}  // namespace tessera::cli

// data check: reports what a data set holds and what is wrong with it, before any training.
#include <iostream>

#include "cli/file_verb.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "train/config_file.h"
#include "train/data/data_check.h"
#include "train/data/text/text_check.h"
#include "train/run/environment.h"

namespace tessera::cli {
namespace {

struct Answer {
  bool clean = false;
  std::string text;
  Value value;
};

template <class Report>
Answer answer_of(const Report& report) {
  return {report.clean(), to_text(report), write(report)};
}

Answer look_at(const Experiment& experiment) {
  const ExperimentConfig& config = experiment.config;
  const auto seed = static_cast<std::uint64_t>(config.seed);
  try {
    if (const auto* text = std::get_if<TextDataConfig>(&config.data.form)) {
      return answer_of(check_text(text->below(config.data.root), seed));
    }
    return answer_of(check_data(config.data, seed));
  } catch (const IoError& error) {  // missing folders are bad input, not a failed check
    throw_config_error({problem_at(experiment.marks, "data", error.what())});
  }
}

int check(const FileArguments& arguments) {
  const Experiment experiment = load_experiment(arguments.config, arguments.overrides);
  set_compute_threads(experiment.config.threads.compute);
  const Answer answer = look_at(experiment);
  if (arguments.json) {
    std::cout << to_json(answer.value, 2) << '\n';
  } else {
    std::cout << answer.text;
    if (answer.clean) std::cout << "next: tessera train " << arguments.config << '\n';
  }
  return answer.clean ? kDone : kFailed;
}

}  // namespace

void add_data(Verb program) {
  const Verb verb = program.add("data", "Look at the data of an experiment file");
  add_file_verb(verb, "check", "Count samples, find files that cannot be read and data that is there twice", &check);
}

}  // namespace tessera::cli

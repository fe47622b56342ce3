// validate: reports what is wrong with an experiment file. With --smoke it also does a dry run of it.
#include <iostream>
#include <memory>
#include <optional>

#include "cli/file_verb.h"
#include "cli/running.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/plan/check.h"
#include "train/report/smoke.h"

namespace tessera::cli {
namespace {

struct ValidateArguments : FileArguments {
  bool smoke = false;
};

struct ProblemRow : ConfigProblem {
  void fields(Fields& f) {
    f.add("file", mark.file, {.help = "the experiment file, or command line"});
    f.add_computed("line", std::int64_t{mark.line}, {.help = "from 1; 0 where there is none"});
    f.add_computed("column", std::int64_t{mark.column}, {.help = "from 1; 0 where there is none"});
    f.add("path", path, {.help = "the key"});
    f.add("message", message, {.help = "what is wrong with it"});
  }
};

struct ValidateAnswer {
  std::string file;
  bool ok = true;
  std::vector<ProblemRow> errors;
  std::optional<Value> smoke;

  void fields(Fields& f) {
    f.add("file", file, {.help = "the experiment file"});
    f.add("ok", ok, {.help = "nothing is wrong"});
    f.add("errors", errors, {.help = "all that is wrong in the file"});
    f.add("smoke", smoke, {.help = "with --smoke: the dry run; null after errors"});
  }
};

const DecisionMap kNoDecisions;  // as in `train` without --decisions

int code_of(const SmokeReport& report) {
  if (report.stopped) return kStopped;
  if (report.ok()) return kDone;
  return report.bad_input ? kBadInput : kFailed;
}

int validate_json(const ValidateArguments& arguments) {
  std::vector<ConfigProblem> problems;
  const std::optional<Experiment> experiment = load_experiment(arguments.config, arguments.overrides, problems);
  std::optional<RunInputs> inputs;
  if (experiment) inputs = check_experiment(*experiment, problems, &kNoDecisions);
  std::optional<SmokeReport> smoked;
  if (arguments.smoke && inputs) smoked = smoke(*experiment, std::move(*inputs), StopRequest(), nullptr);
  ValidateAnswer answer;
  answer.file = arguments.config;
  answer.ok = problems.empty() && (!smoked || smoked->ok());
  for (const ConfigProblem& problem : problems) answer.errors.push_back(ProblemRow{problem});
  if (arguments.smoke) answer.smoke = smoked ? to_value(*smoked) : Value();
  std::cout << to_json(write(answer), 2) << '\n';
  if (!problems.empty()) return kBadInput;
  return smoked ? code_of(*smoked) : kDone;
}

int smoke_test(const ValidateArguments& arguments, const Experiment& experiment, RunInputs inputs) {
  const SmokeReport report = smoke(experiment, std::move(inputs), StopRequest(), &std::cout);
  if (report.ok()) {
    std::cout << arguments.config << ": ok; the temporary folder is removed\nnext: tessera train "
              << shell_word(arguments.config) << '\n';
  } else if (report.stopped) {
    std::cout << "stopped; the temporary folder is removed\n";
  } else {
    std::cerr << "tessera: smoke: " << report.where << ": " << report.failure << '\n';
  }
  return code_of(report);
}

int validate(const ValidateArguments& arguments) {
  if (arguments.smoke) install_stop_signals();  // stopped between two steps, it still tidies up
  if (arguments.json) return validate_json(arguments);
  const Experiment experiment = load_experiment(arguments.config, arguments.overrides);
  RunInputs inputs = check_experiment(experiment, &kNoDecisions);
  if (arguments.smoke) return smoke_test(arguments, experiment, std::move(inputs));
  std::cout << arguments.config << ": ok\nnext: tessera plan " << shell_word(arguments.config) << '\n';
  return kDone;
}

}  // namespace

void add_validate(Verb program) {
  const Verb verb = program.add("validate", "Check an experiment file: all errors at once");
  auto arguments = std::make_shared<ValidateArguments>();
  add_file_arguments(verb, *arguments);
  verb.flag("--smoke", arguments->smoke,
                 "then run 2 steps of every stage, save, reload and tabulate, in a temporary folder that is removed");
  verb.footer(
      "Examples: tessera validate configs/quickstart.yaml\n"
      "          tessera validate configs/quickstart.yaml --smoke optimizer.lr=0.05");
  verb.runs([arguments] { return validate(*arguments); });
}

}  // namespace tessera::cli

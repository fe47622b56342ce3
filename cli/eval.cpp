// eval: evaluates a saved network on one split, class by class.
#include <iostream>
#include <map>
#include <memory>

#include "cli/output_file.h"
#include "cli/verbs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/eval_report.h"
#include "train/tasks/builtin.h"

namespace tessera::cli {
namespace {

struct EvalArguments {
  std::string run;
  EvalOptions options;
  std::string predictions;
  std::map<std::string, std::string> tables;  // files to write, keyed by the table's name
  bool json = false;
};

int eval(EvalArguments arguments) {
  check_output("--predictions", arguments.predictions);
  for (const auto& [name, path] : arguments.tables) check_output("--" + name, path);
  DetailOptions& details = arguments.options.details;
  details.predictions = !arguments.predictions.empty();
  TESSERA_CHECK(details.predictions || !details.probabilities, ConfigError,
                "--probabilities adds columns to a file; name it with --predictions");
  const EvalReport report = evaluate_run(real_vfs(), RunFolder::open(real_vfs(), arguments.run), arguments.options);
  std::cout << (arguments.json ? to_json(to_value(report), 2) + "\n" : to_text(report));
  std::ostream& messages = arguments.json ? std::cerr : std::cout;
  const auto write = [&](const std::string& path, const std::string& text) {
    if (path.empty()) return;
    write_file_atomically(real_vfs(), path, text);
    messages << "wrote " << path << '\n';
  };
  if (details.predictions) write(arguments.predictions, report.details->predictions());
  for (const auto& [name, path] : arguments.tables) {
    if (!path.empty()) write(path, report.details->csv(name));
  }
  if (!arguments.json) std::cout << "next: tessera table " << shell_word(report.run) << '\n';
  return kDone;
}

}  // namespace

void add_eval(Verb program) {
  const Verb verb =
      program.add("eval", "Evaluate a saved network on a split: loss, metrics, and what its task tells beside them");
  auto arguments = std::make_shared<EvalArguments>();
  verb.argument("run", arguments->run, "run folder, runs/<name>/<n>").required();
  verb.argument("overrides", arguments->options.overrides,
                "key=value of data.root, data.batch, threads.compute, threads.loader, device, precision");
  verb.argument("--split", arguments->options.split, "samples to evaluate, unaugmented").one_of({"test", "val", "train"});
  verb.argument(
      "--at", arguments->options.at,
      "stage name (its last checkpoint), global step, or best (by the validation metric); default: the newest checkpoint");
  verb.argument("--predictions", arguments->predictions, "CSV to write: a row per sample; docs/eval.md lists the columns");
  verb.flag("--probabilities", arguments->options.details.probabilities, "--predictions with the probability of every answer");
  for (const Task* task : builtin_tasks()) {
    for (const Task::Table& table : task->tables()) {
      verb.argument(str("--", table.name), arguments->tables[std::string(table.name)], std::string(table.help));
    }
  }
  verb.flag("--json", arguments->json, "for another program to read; docs/json.md lists the keys");
  verb.footer(
      "Examples: tessera eval runs/quickstart/1\n"
      "          tessera eval runs/quickstart/1 --at best --split val\n"
      "          tessera eval runs/quickstart/1 --predictions p.csv data.batch=256");
  verb.runs([arguments] { return eval(*arguments); });
}

}  // namespace tessera::cli

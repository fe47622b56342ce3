// eval: one split through a saved network, class by class.
#include <iostream>
#include <memory>

#include "cli/output_file.h"
#include "cli/verbs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/eval_report.h"

namespace tessera::cli {
namespace {

struct EvalArguments {
  std::string run;
  EvalOptions options;
  std::string predictions;
  std::string confusion;
  bool json = false;
};

int eval(EvalArguments arguments) {
  check_output("--predictions", arguments.predictions);
  check_output("--confusion", arguments.confusion);
  arguments.options.predictions = !arguments.predictions.empty();
  TESSERA_CHECK(arguments.options.predictions || !arguments.options.probabilities, ConfigError,
                "--probabilities adds columns to a file; name it with --predictions");
  const EvalReport report = evaluate_run(real_vfs(), RunFolder::open(real_vfs(), arguments.run), arguments.options);
  std::cout << (arguments.json ? to_json(to_value(report), 2) + "\n" : to_text(report));
  std::ostream& messages = arguments.json ? std::cerr : std::cout;
  const auto write = [&](const std::string& path, const std::string& text) {
    if (path.empty()) return;
    write_file_atomically(real_vfs(), path, text);
    messages << "wrote " << path << '\n';
  };
  write(arguments.predictions, report.predictions);
  write(arguments.confusion, confusion_csv(report));
  if (!arguments.json) std::cout << "next: tessera table " << shell_word(report.run) << '\n';
  return kDone;
}

}  // namespace

void add_eval(Verb program) {
  const Verb verb = program.add("eval", "Evaluate a saved network: loss, accuracy of each class, confusion matrix");
  auto arguments = std::make_shared<EvalArguments>();
  verb.argument("run", arguments->run, "run folder, runs/<name>/<n>").required();
  verb.argument("overrides", arguments->options.overrides,
                   "key=value of data.root, data.batch, threads.compute, threads.loader, device, precision");
  verb.argument("--split", arguments->options.split, "samples to evaluate, unaugmented")
      .one_of({"test", "val", "train"});
  verb.argument(
      "--at", arguments->options.at,
      "stage name (its last checkpoint), global step, or best (validation accuracy); default: the newest checkpoint");
  verb.argument("--predictions", arguments->predictions, "CSV to write: a row per sample; docs/eval.md lists the columns");
  verb.flag("--probabilities", arguments->options.probabilities, "--predictions with the probability of every class");
  verb.argument("--confusion", arguments->confusion, "CSV to write: the whole confusion matrix");
  verb.flag("--json", arguments->json, "for another program to read; docs/json.md lists the keys");
  verb.footer(
      "Examples: tessera eval runs/quickstart/1\n"
      "          tessera eval runs/quickstart/1 --at best --split val\n"
      "          tessera eval runs/quickstart/1 --predictions p.csv --confusion m.csv data.batch=256");
  verb.runs([arguments] { return eval(*arguments); });
}

}  // namespace tessera::cli

// sensitivity: what pruning each layer alone costs.
#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "compress/patterns/builtin.h"
#include "core/config/read.h"
#include "core/support/text.h"
#include "train/report/sensitivity.h"

namespace tessera::cli {
namespace {

struct SensitivityArguments {
  std::string run;
  SensitivityOptions options;
  bool json = false;
};

int sensitivity(SensitivityArguments arguments) {
  arguments.options.before_layer = [](const std::string& layer) { std::cerr << "pruning " << layer << '\n'; };
  const SensitivityReport report = sensitivity_of(real_vfs(), RunFolder::open(real_vfs(), arguments.run), arguments.options);
  std::cout << (arguments.json ? to_json(write(report), 2) + "\n" : to_text(report));
  return kDone;
}

}  // namespace

void add_sensitivity(Verb program) {
  const Verb verb =
      program.add("sensitivity", "Prune each layer alone and evaluate: which sparsity a layer bears without training");
  auto arguments = std::make_shared<SensitivityArguments>();
  SensitivityOptions& options = arguments->options;
  verb.argument("run", arguments->run, "run folder, runs/<name>/<n>").required();
  verb.argument("overrides", options.overrides,
                "key=value of data.root, data.batch, threads.compute, threads.loader, device, precision");
  verb.argument("--at", options.at, "stage name, global step, or best; default: the newest checkpoint");
  verb.argument("--sparsity", options.sparsities, "fractions to try, rising");
  verb.argument("--pattern", options.pattern, "sparse pattern, with its default parameters").one_of(pattern_names());
  verb.argument("--drop", options.drop, "what a suggested target may cost: points of a metric in per cent, else in its own unit");
  verb.flag("--json", arguments->json, "for another program to read; docs/json.md lists the keys");
  verb.footer(
      "Examples: tessera sensitivity runs/dense/1\n"
      "          tessera sensitivity runs/dense/1 --pattern tile --sparsity 0.5,0.75 --drop 2");
  verb.runs([arguments] { return sensitivity(*arguments); });
}

}  // namespace tessera::cli

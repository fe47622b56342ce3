// diff: shows what two runs or experiment files have in common and where they differ.
#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/run_diff.h"

namespace tessera::cli {
namespace {

struct DiffArguments {
  std::string a;
  std::string b;
  bool json = false;
};

// As with diff(1), exit code 1 means that the two differ. Trouble must therefore exit with another code.
RunDiff compare(const DiffArguments& arguments) {
  try {
    return compare_runs(real_vfs(), arguments.a, arguments.b);
  } catch (const ConfigError&) {
    throw;
  } catch (const std::exception& error) {
    throw ConfigError(str("diff: ", error.what()));
  }
}

int diff(const DiffArguments& arguments) {
  const RunDiff result = compare(arguments);
  if (arguments.json) {
    std::cout << to_json(to_value(result), 2) << '\n';
  } else {
    std::cout << to_text(result);
    const std::string file = result.b.is_run ? result.a.path : result.b.path;
    const std::string next = result.both_runs() ? str("table ", shell_word(result.a.path), ' ', shell_word(result.b.path))
                                               : "plan " + shell_word(file);
    std::cout << "next: tessera " << next << '\n';
  }
  return result.differ() ? kFailed : kDone;
}

}  // namespace

void add_diff(Verb program) {
  const Verb verb = program.add("diff", "Compare two runs: settings, environment, data, metrics, decisions, layers, weights");
  auto arguments = std::make_shared<DiffArguments>();
  verb.argument("a", arguments->a, "run folder, or an experiment file: then only its settings").required();
  verb.argument("b", arguments->b, "run folder or experiment file").required();
  verb.flag("--json", arguments->json, "for another program to read; docs/json.md lists the keys");
  verb.footer(
      "Exit code: 0 nothing differs, 1 something does, 2 bad input.\n"
      "Examples: tessera diff runs/quickstart/1 runs/quickstart/2\n"
      "          tessera diff runs/quickstart/1 configs/quickstart.yaml");
  verb.runs([arguments] { return diff(*arguments); });
}

}  // namespace tessera::cli

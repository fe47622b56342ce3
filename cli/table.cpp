#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "core/support/error.h"
#include "train/report/table.h"

namespace tessera::cli {
namespace {

struct TableArguments {
  std::vector<std::string> runs;
  std::string format = "markdown";
  std::string output;
  std::string device;
};

int table(const TableArguments& arguments) {
  const Table result = make_table(real_vfs(), arguments.runs, &std::cerr, arguments.device);
  const std::string text = arguments.format == "csv"    ? to_csv(result)
                           : arguments.format == "json" ? to_json(to_value(result), 2) + "\n"
                                                        : to_markdown(result);
  if (arguments.output.empty()) {
    std::cout << text;
  } else {
    write_file_atomically(real_vfs(), arguments.output, text);
    std::cout << "wrote " << arguments.output << '\n';
  }
  return kDone;
}

}  // namespace

void add_table(Verb program) {
  const Verb verb = program.add("table", "Quality against speed, from the saved checkpoints of runs");
  auto arguments = std::make_shared<TableArguments>();
  verb.argument("runs", arguments->runs, "run folders; runs that differ only in the seed share their rows").required();
  verb.argument("--format", arguments->format, "markdown, csv or json").one_of({"markdown", "csv", "json"});
  verb.argument("--output", arguments->output, "file to write instead of standard output");
  verb.argument("--device", arguments->device,
                   "where networks are evaluated and timed: auto, cpu, cuda or cuda:N; default: each run's own");
  verb.footer("Example: tessera table runs/quickstart/1 runs/quickstart/2 --format csv");
  verb.runs([arguments] { return table(*arguments); });
}

}  // namespace tessera::cli

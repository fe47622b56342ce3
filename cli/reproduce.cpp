#include "train/reproduce/reproduce.h"

#include <unistd.h>

#include <iostream>
#include <memory>

#include "cli/running.h"
#include "cli/verbs.h"
#include "core/support/text.h"
#include "train/run/progress.h"

namespace tessera::cli {
namespace {

struct ReproduceArguments {
  std::string table;
  std::string runs;
  std::string results;
  std::string time_limit;
  bool dry_run = false;
};

void print_plan(const std::vector<PlannedCell>& cells) {
  std::vector<std::vector<std::string>> rows{{"cell", "way", "steps", "about"}};
  double seconds = 0;
  std::size_t left = 0;
  for (const PlannedCell& cell : cells) {
    const bool done = cell.way == "done";
    rows.push_back({cell.cell, cell.way, done ? "" : std::to_string(cell.steps), done ? "" : format_seconds(cell.seconds)});
    seconds += cell.seconds;
    left += done ? 0 : 1;
  }
  std::cout << aligned(rows, {false, false, true, true}) << left << " cells to run, about " << format_seconds(seconds)
            << " of training steps\n";
}

int reproduce(const ReproduceArguments& arguments) {
  install_stop_signals();
  ReproduceOptions options;
  options.runs = runs_folder(arguments.runs);
  options.results = arguments.results;
  options.out = &std::cout;
  options.terminal = isatty(STDOUT_FILENO) != 0;
  options.stop = stop_after(arguments.time_limit);
  if (arguments.dry_run) {
    print_plan(plan_table(real_vfs(), arguments.table, options));
    return kDone;
  }
  const ReproduceReport report = reproduce(real_vfs(), arguments.table, options);
  for (const std::string& file : report.written) std::cout << "wrote " << file << '\n';
  if (!report.failures.empty()) {
    std::cerr << report.failures.size() << " failed; the next call tries them again:\n";
    for (const std::string& failure : report.failures) std::cerr << "  " << failure << '\n';
  }
  if (report.stopped) {
    std::cout << "stopped; everything is saved. Go on with:\n  tessera reproduce " << shell_word(arguments.table);
    if (!arguments.runs.empty()) std::cout << " --runs " << shell_word(arguments.runs);
    if (!arguments.results.empty()) std::cout << " --results " << shell_word(arguments.results);
    std::cout << '\n';
    return kStopped;
  }
  return report.failures.empty() ? kDone : kFailed;
}

}  // namespace

void add_reproduce(Verb program) {
  const Verb verb = program.add("reproduce", "Run what a table file asks for, and write the table");
  auto arguments = std::make_shared<ReproduceArguments>();
  verb.argument("table", arguments->table, "table file: arms, seeds, published rows").required();
  verb.argument("--runs", arguments->runs, "folder of the run folders (default: $TESSERA_RUNS or ./runs)");
  verb.argument("--results", arguments->results, "folder of the results and the table (default: results/ beside the table file)");
  verb.argument("--time-limit", arguments->time_limit, "stop and save after this time, e.g. 3h50m");
  verb.flag("--dry-run", arguments->dry_run, "tell what would run and how long it may take");
  verb.footer("Example: tessera reproduce configs/tables/admm_resnet8.yaml --dry-run");
  verb.runs([arguments] { return reproduce(*arguments); });
}

}  // namespace tessera::cli

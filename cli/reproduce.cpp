#include "train/reproduce/reproduce.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/output_file.h"
#include "cli/running.h"
#include "cli/verbs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/config/yaml.h"
#include "train/reproduce/slurm.h"
#include "train/reproduce/table_plan.h"
#include "train/run/progress.h"

namespace tessera::cli {
namespace {

struct ReproduceArguments {
  std::string table;
  std::string runs;
  std::string results;
  std::string time_limit;
  bool dry_run = false;
  std::string cell;
  std::string slurm;
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
  if (left == 0) std::cout << kNothingLeft << '\n';
}

std::string options_text(const ReproduceArguments& arguments) {
  std::string text;
  if (!arguments.runs.empty()) text += " --runs " + shell_word(arguments.runs);
  if (!arguments.results.empty()) text += " --results " + shell_word(arguments.results);
  return text;
}

// Cells that depend on a choice still to be made are left for another script.
int write_slurm(const ReproduceArguments& arguments, const ReproduceOptions& options) {
  check_output("--slurm", arguments.slurm);
  const TablePlan plan(real_vfs(), arguments.table, options);
  const std::vector<Cell> cells = plan.pending();
  TESSERA_CHECK(!cells.empty(), ConfigError, "--slurm: ", kNothingLeft,
                "; tessera reproduce without --slurm times networks that have no times yet");
  plan.check(cells);
  const std::string limit = arguments.time_limit.empty() ? "" : " --time-limit " + shell_word(arguments.time_limit);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      str(shell_word(program), " reproduce ", shell_word(arguments.table), options_text(arguments), limit, " --cell");
  std::vector<std::string> names;
  for (const Cell& cell : cells) names.push_back(cell.name());
  const Experiment asked = parse_experiment(parse_yaml(cells.front().text, cells.front().name()));  // threads not yet resolved
  const SlurmJob job{plan.table().name, command, std::filesystem::current_path().string(), asked.config.threads.compute};
  write_file_atomically(real_vfs(), arguments.slurm, slurm_script(job, names));
  std::cout << "wrote " << arguments.slurm << ": " << names.size() << " cells. Submit it with:\n  sbatch "
            << shell_word(arguments.slurm) << '\n';
  if (const std::size_t later = plan.undecided().size(); later > 0)
    std::cout << "when it has ended, call this again for the " << later << " cells that its results choose\n";
  std::cout << "at last, time the networks with:\n  tessera reproduce " << shell_word(arguments.table) << options_text(arguments)
            << '\n';
  return kDone;
}

int reproduce(const ReproduceArguments& arguments) {
  install_stop_signals();
  const int ways = int{arguments.dry_run} + int{!arguments.cell.empty()} + int{!arguments.slurm.empty()};
  TESSERA_CHECK(ways <= 1, ConfigError, "reproduce: one of --dry-run, --cell and --slurm at a time");
  ReproduceOptions options;
  options.runs = runs_folder(arguments.runs);
  options.results = arguments.results;
  options.out = &std::cout;
  options.terminal = isatty(STDOUT_FILENO) != 0;
  options.stop = stop_after(arguments.time_limit);
  options.cell = arguments.cell;
  if (!arguments.slurm.empty()) return write_slurm(arguments, options);
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
    std::cout << "stopped; everything is saved. Go on with:\n  tessera reproduce " << shell_word(arguments.table)
              << options_text(arguments) << (arguments.cell.empty() ? "" : " --cell " + shell_word(arguments.cell)) << '\n';
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
  verb.argument("--cell", arguments->cell, "run this cell alone, beside other calls that run others; the networks are not timed");
  verb.argument("--slurm", arguments->slurm, "write an array job for Slurm, of the cells that can run now, and run nothing")
      .placeholder("FILE");
  verb.flag("--dry-run", arguments->dry_run, "tell what would run and how long it may take");
  verb.footer("Example: tessera reproduce configs/tables/admm_resnet8.yaml --dry-run");
  verb.runs([arguments] { return reproduce(*arguments); });
}

}  // namespace tessera::cli

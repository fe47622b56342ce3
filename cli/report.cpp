// report: writes one HTML page about runs and tables, from their files alone.
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include "cli/output_file.h"
#include "cli/verbs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/html/page.h"

namespace tessera::cli {
namespace {

constexpr int kWatchSeconds = 5;

struct ReportArguments {
  std::vector<std::string> sources;
  std::string output;
  bool watch = false;
};

// Leaves out the output file: a page of the same sources has the same bytes, whatever its name.
std::string command_of(const ReportArguments& arguments) {
  std::string command = "tessera report";
  for (const std::string& source : arguments.sources) command += str(' ', shell_word(source));
  return command;
}

int report(const ReportArguments& arguments) {
  TESSERA_CHECK(!arguments.watch || !arguments.output.empty(), ConfigError,
                "report: --watch writes a file again and again; name "
                "it with --output");
  check_output("--output", arguments.output);
  check_no_input("--output", arguments.output, arguments.sources);
  PageOptions options{.command = command_of(arguments)};
  SavedNetworks known;
  for (;;) {
    const ReportSources sources = read_report_sources(real_vfs(), arguments.sources, &known);
    const bool again = arguments.watch && sources.open();
    options.reload_seconds = again ? kWatchSeconds : 0;
    const std::string page = report_page(sources, options);
    if (arguments.output.empty()) {
      std::cout << page;
    } else {
      write_file_atomically(real_vfs(), arguments.output, page);
      std::cout << "wrote " << arguments.output << std::endl;
    }
    if (!again) return kDone;
    std::this_thread::sleep_for(std::chrono::seconds(kWatchSeconds));
  }
}

}  // namespace

void add_report(Verb program) {
  const Verb verb = program.add("report", "One HTML page of runs and tables, from their files alone");
  auto arguments = std::make_shared<ReportArguments>();
  verb.argument("sources", arguments->sources,
                "run folders, finished or under way, and JSON tables of reproduce or of table --format json")
      .required();
  verb.argument("-o,--output", arguments->output, "file to write instead of standard output");
  verb.flag("--watch", arguments->watch, "write the file again every few seconds until the runs end");
  verb.footer("Example: tessera report runs/quickstart/1 -o report.html");
  verb.runs([arguments] { return report(*arguments); });
}

}  // namespace tessera::cli

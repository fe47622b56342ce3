// The `tessera` program. Library code throws; this is the only place that catches, prints and chooses an exit code.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "cli/ranks.h"
#include "cli/verbs.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "train/run/environment.h"

namespace tessera::cli {
namespace {

int run_verb(const Run& run) {
  try {
    const int code = run();
    std::cout.flush();
    TESSERA_CHECK(std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0, IoError,
                  "standard output cannot be written");
    return code;
  } catch (const RankFailed& failed) {
    std::cerr << str("tessera: ", failed.what(), '\n');
    return failed.exit_code();
  } catch (const ConfigError& error) {
    leave_it_to_rank_0(kBadInput, error.what());
    std::cerr << str(error.what(), '\n');
    return kBadInput;
  } catch (const std::exception& error) {
    leave_it_to_rank_0(kFailed, error.what());
    std::cerr << str("tessera: ", error.what(), '\n');
    return kFailed;
  }
}

constexpr std::array<std::string_view, 4> kLevels{"debug", "info", "warning", "error"};  // in the order of LogLevel

// The level that the environment variable TESSERA_LOG names.
std::string_view asked_level() {
  const char* const text = std::getenv("TESSERA_LOG");
  return text != nullptr && *text != '\0' ? text : "warning";
}

void check_level() {
  TESSERA_CHECK(std::find(kLevels.begin(), kLevels.end(), asked_level()) != kLevels.end(), ConfigError,
                "TESSERA_LOG: unknown level '", asked_level(), "'; it is debug, info, warning or error");
}

// Prints messages of the asked level and above. The rank log gets warnings and errors whatever the level.
void print_messages() {
  const auto found = std::find(kLevels.begin(), kLevels.end(), asked_level());
  const LogLevel least = found == kLevels.end() ? LogLevel::warning : static_cast<LogLevel>(found - kLevels.begin());
  set_log_sink([least](LogLevel level, std::string_view message) {
    if (level >= std::min(least, LogLevel::warning)) rank_log().line(message);
    if (level < least) return;
    const int rank = ranks().rank();
    std::cerr << str("tessera: ", rank > 0 ? str("rank ", rank, ": ") : "", message, '\n');
  });
}

int run_program(int argc, char** argv) {
  Program program("tessera", "tessera trains, compresses and times neural networks", "tessera " + version_text());
  for (const auto add : {add_train,    add_resume, add_fork,    add_status,   add_eval,      add_sensitivity, add_diff,
                         add_plan,     add_layers, add_table,   add_report,   add_reproduce, add_bench,       add_compress,
                         add_validate, add_export, add_predict, add_generate, add_schema,    add_init,        add_data}) {
    add(program.root());
  }
  return leave_ranks(run_verb([&] {
    print_messages();
    join_ranks();
    check_level();  // after join_ranks(), so that several ranks report it once
    return program.parse(argc, argv)();
  }));
}

}  // namespace
}  // namespace tessera::cli

int main(int argc, char** argv) { return tessera::cli::run_program(argc, argv); }

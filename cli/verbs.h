// One function per verb: adds its sub-command with help and example, and stores what to run in `run`.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace tessera::cli {

// Exit codes: 0 done, 1 failed while running, 2 bad input, 3 stopped on purpose with nothing lost.
enum ExitCode : int { kDone = 0, kFailed = 1, kBadInput = 2, kStopped = 3 };

using Run = std::function<int()>;

void add_train(CLI::App& app, Run& run);
void add_resume(CLI::App& app, Run& run);
void add_fork(CLI::App& app, Run& run);
void add_status(CLI::App& app, Run& run);
void add_eval(CLI::App& app, Run& run);
void add_diff(CLI::App& app, Run& run);
void add_plan(CLI::App& app, Run& run);
void add_layers(CLI::App& app, Run& run);
void add_table(CLI::App& app, Run& run);
void add_bench(CLI::App& app, Run& run);
void add_validate(CLI::App& app, Run& run);
void add_schema(CLI::App& app, Run& run);
void add_export(CLI::App& app, Run& run);
void add_init(CLI::App& app, Run& run);
void add_data(CLI::App& app, Run& run);

}  // namespace tessera::cli

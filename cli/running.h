// What train, resume and fork share: signals, time limit, terminal, outcome.
#pragma once

#include <string>

#include "cli/verbs.h"
#include "train/session.h"

namespace tessera::cli {

// SIGINT, SIGTERM and SIGUSR1 ask the run to stop at its next step boundary; a second SIGINT ends the process at once.
void install_stop_signals();

// Progress on standard output, a bar when it is a terminal; `time_limit` like "3h50m", "90s" or "" for none.
SessionOptions session_options(const std::string& time_limit);

// Runs to the end or to a stop and prints what to do next. Returns the exit code.
int finish(Session session, const std::string& run_path);

// --runs DIR, TESSERA_RUNS or ./runs.
std::string runs_folder(const std::string& option);

}  // namespace tessera::cli

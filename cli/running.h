// What train, resume and fork share: signals, time limit, terminal, outcome.
#pragma once

#include <string>

#include "cli/verb.h"
#include "train/run/session.h"

namespace tessera::cli {

// SIGINT, SIGTERM and SIGUSR1 ask the run to stop at its next step boundary; a second SIGINT ends the process at once.
void install_stop_signals();

// When a command that starts now has to stop: `time_limit` is like "3h50m" or "90s"; "" sets no limit.
StopRequest stop_after(const std::string& time_limit);

// `--profile [STEPS]`; `text` stays empty without it.
void add_profile_option(Verb verb, std::string& text);

// Progress on standard output, a bar when it is a terminal. Throws ConfigError when `profile` is no number of steps.
SessionOptions session_options(const StopRequest& stop, const std::string& profile);

// A rank above 0 of several: takes part in what rank 0 runs. Returns the exit code.
int follow(const StopRequest& stop);

// Runs to the end or to a stop and prints what to do next. Returns the exit code.
int finish(Session session);

// --runs DIR, TESSERA_RUNS or ./runs.
std::string runs_folder(const std::string& option);

}  // namespace tessera::cli

// Runs the tessera program in several processes, as mpirun starts them on this machine.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "tests/end_to_end/program.h"

namespace tessera::testing {

// Root may start ranks, more of them than there are processors, and ranks that wait give way to those that compute.
extern const std::vector<std::string> kRanksEnvironment;

// The small run's experiment (small_run.h) with one thread, and the text with the first `from` replaced by `to`.
std::string small_experiment_of_ranks();
std::string changed(std::string text, const std::string& from, const std::string& to);

// What mpirun is told to start these words on so many ranks.
std::vector<std::string> started(int ranks, const std::vector<std::string>& words);
Outcome run_ranks(int ranks, const std::vector<std::string>& words, const std::vector<std::string>& environment = {});

// What the processes below mpirun are: by rank, their number.
std::map<int, pid_t> processes_of(const RunningProgram& mpirun);
// Whether a checkpoint of the run is being written, or was when the run died: it has a name of its own until it is whole.
bool holds_unfinished_save(const std::string& run);
// Whether the process is gone or a zombie within five seconds.
bool ends_soon(pid_t process);

}  // namespace tessera::testing

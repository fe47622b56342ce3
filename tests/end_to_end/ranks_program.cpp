#include "tests/end_to_end/ranks_program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "core/support/error.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {

const std::vector<std::string> kRanksEnvironment{
    "OMPI_ALLOW_RUN_AS_ROOT=1",       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
    "OMPI_MCA_mpi_yield_when_idle=1", "OMP_WAIT_POLICY=passive",          "ASAN_OPTIONS=halt_on_error=1:detect_leaks=0"};

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string small_experiment_of_ranks() { return changed(kSmallExperiment, "compute: 2", "compute: 1"); }

std::vector<std::string> started(int ranks, const std::vector<std::string>& words) {
  return joined({"-n", std::to_string(ranks), "--bind-to", "none", TESSERA_OF_RANKS}, words);
}

Outcome run_ranks(int ranks, const std::vector<std::string>& words, const std::vector<std::string>& environment) {
  return run_program(started(ranks, words), joined(kRanksEnvironment, environment));
}

std::map<int, pid_t> processes_of(const RunningProgram& mpirun) {
  constexpr std::string_view kRank = "OMPI_COMM_WORLD_RANK=";
  std::map<int, pid_t> processes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    try {
      std::string state;
      pid_t parent = 0;
      const std::string stat = read_bytes(entry.path() / "stat");
      std::istringstream(stat.substr(stat.rfind(')') + 1)) >> state >> parent;
      if (parent != mpirun.process()) continue;
      const std::string variables = read_bytes(entry.path() / "environ");
      const std::size_t at = variables.find(kRank);
      if (at != std::string::npos) processes[std::stoi(variables.substr(at + kRank.size()))] = std::stoi(name);
    } catch (const std::runtime_error&) {  // the process has ended meanwhile
    }
  }
  return processes;
}

bool holds_unfinished_save(const std::string& run) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints", none)) {
    if (entry.path().filename().string().starts_with(".tmp-")) return true;
  }
  return false;
}

static bool has_ended(pid_t process) {
  try {
    const std::string stat = read_bytes(str("/proc/", process, "/stat"));
    const std::size_t end_of_name = stat.rfind(')');  // missing if the process ended during the read
    return end_of_name == std::string::npos || stat.substr(end_of_name + 2, 1) == "Z";
  } catch (const std::runtime_error&) {
    return true;
  }
}

bool ends_soon(pid_t process) {
  for (int i = 0; i < 100 && !has_ended(process); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return has_ended(process);
}

}  // namespace tessera::testing

#include "cli/neighbours.h"

#include <poll.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <utility>

#include "cli/verb.h"
#include "core/config/read.h"
#include "core/io/scratch_folder.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "train/config/yaml_writer.h"

namespace tessera::cli {
namespace {

constexpr const char* kReady = "ready";

// Changes to the environment of the processes: they do not repeat warnings, and they do not see srun's number of tasks, which
// applies to this process alone.
const std::vector<std::string> kEnvironment{"TESSERA_LOG=error", "SLURM_STEP_NUM_TASKS"};

// Nothing is ever written to this process's input. It ends when the process that started this one closes the pipe or dies.
bool input_has_ended() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

void explaining_failures(std::int64_t count, const std::function<void()>& body) {
  try {
    body();
  } catch (const IoError& error) {
    throw IoError(str("plan: of ", count, " processes that compute beside this one, as other ranks of a machine do: ",
                      error.what(), "; --ranks-per-machine says how many ranks a machine has"));
  }
}

}  // namespace

void NeighbourProcesses::start(std::int64_t count, const ExperimentConfig& config, std::int64_t ranks, const std::string& begin) {
  const ScratchFolder folder("tessera_plan");  // each process has read these files by the time it is ready
  const std::string file = folder / "experiment.yaml", checkpoint = folder / "begin";
  write_file_atomically(real_vfs(), file, to_yaml(write(config)));
  write_file_atomically(real_vfs(), checkpoint, begin);
  explaining_failures(count, [&] {
    for (std::int64_t i = 0; i < count; ++i) {
      processes_.push_back(std::make_unique<ChildProcess>(
          std::vector<std::string>{"/proc/self/exe", "plan", file, "--ranks", str(ranks), kNeighbourOption, checkpoint},
          kEnvironment));
    }
    for (const auto& process : processes_) {
      const std::string answer = process->read_line();
      TESSERA_CHECK(answer == kReady, InternalError, "plan: a process beside this one says '", answer, "'");
    }
  });
}

void NeighbourProcesses::stop() {
  close_inputs();
  explaining_failures(std::ssize(processes_), [&] {
    for (const auto& process : processes_) process->finish();
  });
  processes_.clear();
}

void NeighbourProcesses::close_inputs() {
  for (const auto& process : processes_) process->close_input();
}

int be_neighbour(const Experiment& experiment, std::int64_t ranks, const std::string& begin) {
  bool said = false;
  take_steps_beside(experiment, ranks, real_vfs().read_file(begin), [&] {
    if (!std::exchange(said, true)) std::cout << kReady << std::endl;
    return !input_has_ended();
  });
  return kDone;
}

}  // namespace tessera::cli

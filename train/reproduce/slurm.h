// A table's cells as an array job of Slurm, one a task.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tessera {

struct SlurmJob {
  std::string name;  // of the table
  std::string command;  // in the shell's words, that runs the cell whose name follows it
  std::string folder;  // in which the command is run
  std::int64_t processors = 0;  // of a task; 0 = as many as Slurm gives
};

// A shell script for sbatch. A task that is told of its end stops, saves and ends with exit code 3; submitted once more, it goes
// on.
std::string slurm_script(const SlurmJob& job, std::span<const std::string> cells);

}  // namespace tessera

#include "cli/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "cli/verb.h"
#include "core/support/error.h"
#if TESSERA_HAS_MPI
#include "core/comm/heartbeat.h"
#include "core/comm/mpi_communicator.h"
#include "core/comm/own_gpu.h"
#include "core/io/vfs.h"
#include "core/support/hash.h"
#include "train/run/environment.h"
#include "train/run/rank_messages.h"
#endif
#if TESSERA_HAS_NCCL
#include "core/cuda/comm/nccl_sums.h"
#endif

namespace tessera::cli {
namespace {

std::unique_ptr<Communicator> several;

// When a rank ends all, mpirun drops output that it has not read yet. The wait saves the message printed before this call.
void end_all_told(Communicator& ranks, int exit_code) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ranks.end_all(exit_code);
}

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

// The number of processes that Open MPI's or MPICH's mpirun has started; 1 without mpirun. Processes that Slurm's srun starts do
// not know of each other. In a terminal that srun has opened (SLURM_PTY_PORT), one program is one process.
int started_processes() {
  const int processes = std::max(number_in("OMPI_COMM_WORLD_SIZE"), number_in("PMI_SIZE"));
  if (processes > 0) return processes;
  const int tasks = number_in("SLURM_STEP_NUM_TASKS");
  const bool terminal = std::getenv("SLURM_PTY_PORT") != nullptr && ::isatty(STDIN_FILENO) != 0;
  TESSERA_CHECK(tasks <= 1 || terminal, ConfigError, "srun has started ", tasks,
                " processes, each of which would train alone; start them by mpirun, as examples/slurm/train.sh does, or one by "
                "srun --ntasks=1");
  return 1;
}

#if TESSERA_HAS_MPI
// Ranks of different builds may not even understand each other.
Value program_of_process() {
  Value program = Value::map();
  program.set("version", version_text());
  program.set("file", str('#', xxh3_128(real_vfs().read_file("/proc/self/exe"))));
  return program;
}

Communicator* joined = nullptr;  // the object of `several`; also valid while `several` is being destroyed

// Ends all ranks. Called from a thread other than the one that computes.
void end_ranks(const std::string& why) {
  std::cerr << str("tessera: ", why, "; all ranks end, and the last checkpoint stands\n");
  end_all_told(*joined, kFailed);
}

MakeGpuSums gpu_sums() {
#if TESSERA_HAS_NCCL
  return nccl_sums(end_ranks);
#else
  return {};
#endif
}
#endif

}  // namespace

void join_ranks() {
  const int processes = started_processes();
  if (processes == 1) return;
#if TESSERA_HAS_MPI
  take_own_gpu();
  several = mpi_communicator(gpu_sums());
  joined = several.get();
  TESSERA_CHECK(several->size() == processes, ConfigError, "mpirun has started ", processes, " processes; this one sees ",
                several->size(), ": it is another MPI than the one that tessera was built with");
  several->watch([](int rank) { end_ranks(str("rank ", rank, " has not answered for ", kSilence.count(), " seconds")); });
  compare_keys(*several, program_of_process(), "the program");
#else
  throw ConfigError(
      str("mpirun has started ", processes,
          " processes, but this tessera was built without MPI and each would train alone; install libopenmpi-dev and "
          "openmpi-bin, configure and build again, or start one process"));
#endif
}

RankLog& rank_log() {
  static RankLog log;
  return log;
}

Communicator& ranks() { return several ? *several : one_process(); }

void leave_it_to_rank_0(int exit_code, std::string_view why) {
  if (ranks().rank() == 0) return;
  rank_log().line(str("failed: ", why));
  several->fail(exit_code, why);
}

int leave_ranks(int exit_code) {
  if (!several) return exit_code;
  std::cout.flush();
  if (exit_code != kDone && exit_code != kStopped) end_all_told(*several, exit_code);
  try {
    several->barrier();
  } catch (const RankFailed& failed) {
    std::cerr << str("tessera: ", failed.what(), '\n');
    end_all_told(*several, failed.exit_code());
  } catch (const Error& error) {
    std::cerr << str("tessera: ", error.what(), '\n');
    end_all_told(*several, kFailed);
  }
  several.reset();
  return exit_code;
}

}  // namespace tessera::cli

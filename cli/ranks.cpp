#include "cli/ranks.h"

#include <cstdlib>
#include <iostream>
#include <memory>

#include "cli/verb.h"
#include "core/support/error.h"
#if TESSERA_HAS_MPI
#include "core/comm/heartbeat.h"
#include "core/comm/mpi_communicator.h"
#endif

namespace tessera::cli {
namespace {

std::unique_ptr<Communicator> several;

// That Open MPI's or MPICH's mpirun has started; 1 without one.
int started_processes() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const text = std::getenv(name);
    if (text != nullptr && std::atoi(text) > 1) return std::atoi(text);
  }
  return 1;
}

}  // namespace

void join_ranks() {
  const int processes = started_processes();
  if (processes == 1) return;
#if TESSERA_HAS_MPI
  several = mpi_communicator();
  TESSERA_CHECK(several->size() == processes, ConfigError, "mpirun has started ", processes,
                " processes, of which this one sees ", several->size(),
                ": it is another MPI than the one that tessera was built with");
  several->watch([all = several.get()](int rank) {
    std::cerr << str("tessera: rank ", rank, " has not answered for ", kSilence.count(),
                     " seconds; all ranks end, and the last checkpoint stands\n");
    all->end_all(kFailed);
  });
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
  if (exit_code != kDone && exit_code != kStopped) several->end_all(exit_code);
  try {
    several->barrier();
  } catch (const RankFailed& failed) {
    std::cerr << "tessera: " << failed.what() << '\n';
    several->end_all(failed.exit_code());
  } catch (const Error& error) {
    std::cerr << "tessera: " << error.what() << '\n';
    several->end_all(kFailed);
  }
  several.reset();
  return exit_code;
}

}  // namespace tessera::cli

// How the program finds its ranks in a build without MPI.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/ranks.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::cli {
namespace {

TEST(WithoutMpi, SeveralProcessesAreRefusedInPlaceOfTrainingEachAlone) {
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  const std::string message = message_of<ConfigError>(join_ranks);
  unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_TRUE(message.starts_with("mpirun has started 2 processes, but this tessera was built without MPI")) << message;
}

// These processes do not know of each other, with or without MPI.
TEST(WithoutMpi, SeveralProcessesOfSrunAreRefused) {
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  const std::string message = message_of<ConfigError>(join_ranks);
  setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  EXPECT_NO_THROW(join_ranks());
  unsetenv("SLURM_STEP_NUM_TASKS");
  EXPECT_TRUE(message.starts_with("srun has started 4 processes, each of which would train alone; start them by mpirun"))
      << message;
}

TEST(WithoutMpi, OneProcessIsRankZeroOfOne) {
  join_ranks();
  EXPECT_EQ(ranks().size(), 1);
  leave_it_to_rank_0(2, "alone");
  EXPECT_EQ(leave_ranks(2), 2);
}

}  // namespace
}  // namespace tessera::cli

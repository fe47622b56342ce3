// A table reproduced by an array job, one cell in each task.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_table.h"

namespace tessera::testing {
namespace {

using ReproduceJob = Reproduce;

// Runs the tasks of an array job as Slurm does: all at once.
void run_tasks(const std::string& script, int tasks) {
  std::vector<std::thread> running;
  for (int i = 0; i < tasks; ++i) {
    running.emplace_back([&script, i] {
      const std::string command = str("SLURM_ARRAY_TASK_ID=", i, " sh ", script, " > ", script, ".log", i, " 2>&1");
      EXPECT_EQ(std::system(command.c_str()), 0) << read_bytes(str(script, ".log", i));
    });
  }
  for (std::thread& task : running) task.join();
}

TEST_F(ReproduceJob, TasksOfAnArrayJobMeetInOneResultsFile) {
  const std::string job = folder_ / "job.sh";
  const Outcome tuning = reproduce("tasks", {"--slurm", job});
  expect_outcome(tuning, 0, "6 cells. Submit it with:\n  sbatch ");
  expect_in(tuning.output, "call this again for the 3 cells that its results choose");
  run_tasks(job, 6);
  EXPECT_EQ(results("tasks").size(), 6u);
  expect_outcome(reproduce("tasks", {"--cell", "dense-lr0.05-seed1"}), 0, "dense-lr0.05-seed1: has its result");
  expect_outcome(reproduce("tasks", {"--cell", "dense-seed1"}), 2, "--cell: small has no cell 'dense-seed1' that can run now");
  expect_outcome(reproduce("tasks", {"--slurm", job}), 0, "3 cells. Submit it with:");
  run_tasks(job, 3);
  EXPECT_EQ(results("tasks").size(), 9u);
  expect_outcome(reproduce("tasks", {"--slurm", job}), 2, "--slurm: every cell has its result; --results FOLDER runs");
  ASSERT_EQ(reproduce("tasks").exit_code, 0);
  ASSERT_EQ(reproduce("straight").exit_code, 0);
  EXPECT_EQ(table_without_clocks("tasks"), table_without_clocks("straight"));
}

}  // namespace
}  // namespace tessera::testing

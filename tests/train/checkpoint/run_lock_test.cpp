#include "train/checkpoint/run_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/core/io/expect_error.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera {
namespace {

TEST(RunLock, ASecondHolderIsToldWhoTheFirstIs) {
  const TemporaryFolder folder;
  const RunLock lock(folder.path());
  expect_io_error([&] { RunLock second(folder.path()); },
                  {folder.path().string() + " is being written by process " + std::to_string(::getpid()) + " on "});
}

TEST(RunLock, IsFreeAfterItsHolder) {
  const TemporaryFolder folder;
  { const RunLock lock(folder.path()); }
  RunLock lock(folder.path());
  const RunLock moved(std::move(lock));
  EXPECT_THROW(RunLock second(folder.path()), IoError);
}

TEST(RunLock, EndsWithAProcessThatNeverReleasedIt) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder.path());
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(real_vfs().read_file(folder.path() / "LOCK").find("process " + std::to_string(child)), 0u);
  EXPECT_NO_THROW(RunLock lock(folder.path()));
}

// Ten processes each read a number, wait, and write the number plus one.
TEST(FileLock, WritersTakeTurns) {
  const TemporaryFolder folder;
  const std::string file = folder / "count";
  std::vector<pid_t> children;
  for (int i = 0; i < 10; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const FileLock turn(file);
      const std::string before = real_vfs().read_file(file);
      ::usleep(5000);
      std::ofstream(file, std::ios::app) << before.size() << std::flush;
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(real_vfs().read_file(file), "0123456789");
}

TEST(RunLock, NamesAFolderThatIsNotThere) {
  expect_io_error([] { RunLock lock("/nonexistent/run"); }, {"lock: open failed: path is /nonexistent/run/LOCK: No such file"});
}

}  // namespace
}  // namespace tessera

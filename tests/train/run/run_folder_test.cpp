#include "train/run/run_folder.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/core/io/faulty_vfs.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

std::string error_of(const std::string& path) {
  return message_of<ConfigError>([&] { RunFolder::open(real_vfs(), path); });
}

TEST(RunFolder, NumbersGoUpAndTakeTheFirstFree) {
  const TemporaryFolder folder;
  const std::string runs = (folder.path() / "runs").string();
  EXPECT_EQ(RunFolder::create(real_vfs(), runs, "x").path(), runs + "/x/1");
  EXPECT_EQ(RunFolder::create(real_vfs(), runs, "x").path(), runs + "/x/2");
  EXPECT_EQ(RunFolder::create(real_vfs(), runs, "y").path(), runs + "/y/1");
  EXPECT_TRUE(real_vfs().exists(runs + "/x/2/checkpoints"));
  write_file_atomically(real_vfs(), runs + "/x/3", "a file in the way");
  EXPECT_EQ(RunFolder::create(real_vfs(), runs, "x").path(), runs + "/x/4");
}

TEST(RunFolder, OpensARunWithAndWithoutTrailingSlashes) {
  const TemporaryFolder folder;
  const RunFolder made = RunFolder::create(real_vfs(), folder.path().string(), "x");
  write_file_atomically(real_vfs(), made.resolved_config(), "version: 1\n");
  EXPECT_EQ(RunFolder::open(real_vfs(), made.path()).path(), made.path());
  EXPECT_EQ(RunFolder::open(real_vfs(), made.path() + "//").path(), made.path());
}

TEST(RunFolder, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(error_of(path + "/none"), "no run folder " + path + "/none");
  EXPECT_EQ(error_of(path), path + " is not a run folder: config.resolved.yaml is missing; give runs/<name>/<n>");
}

TEST(RunFolder, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "file").string();
  write_file_atomically(real_vfs(), file, "");
  try {
    RunFolder::create(real_vfs(), file, "x");
    FAIL() << "made";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot create " + file + "/x"), std::string::npos) << error.what();
  }
}

// A checkpoint is only as safe as every folder above it: each new name must be durable before a name is made below it.
TEST(RunFolder, MakesEveryNewNameDurable) {
  const TemporaryFolder folder;
  const std::string above = folder.path().filename().string();
  const std::string runs = (folder.path() / "new/runs").string();
  FaultyVfs vfs;
  RunFolder::create(vfs, runs, "x");
  EXPECT_EQ(vfs.log(), (std::vector<std::string>{"mkdir new", "syncdir " + above, "mkdir runs", "syncdir new", "mkdir x",
                                                 "syncdir runs", "mkdir 1", "mkdir checkpoints", "syncdir 1", "syncdir x"}));
  FaultyVfs second;
  RunFolder::create(second, runs, "x");
  EXPECT_EQ(second.log(), (std::vector<std::string>{"mkdir 2", "mkdir checkpoints", "syncdir 2", "syncdir x"}));
}

// Another process creates the folder just after this one saw that the name is free.
class Contested final : public ForwardingVfs {
 public:
  Contested() : ForwardingVfs(real_vfs()) {}
  void make_directory(const Path& path) override {
    if (path.filename() == "1") below_.make_directory(path);
    below_.make_directory(path);
  }
};

TEST(RunFolder, LeavesANumberToWhoeverTookIt) {
  const TemporaryFolder folder;
  const std::string runs = folder.path().string();
  Contested vfs;
  EXPECT_EQ(RunFolder::create(vfs, runs, "x").path(), runs + "/x/2");
  EXPECT_TRUE(real_vfs().list(runs + "/x/1").empty()) << "the other's";
}

}  // namespace
}  // namespace tessera

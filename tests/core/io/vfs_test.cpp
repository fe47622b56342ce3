#include "core/io/vfs.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/core/io/expect_error.h"
#include "tests/core/io/expect_failure_of.h"
#include "tests/core/io/faulty_vfs.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera {
namespace {

class VfsTest : public ::testing::Test {
 protected:
  void put(const std::string& name, std::string_view bytes) {
    const auto file = vfs.create(folder.path() / name);
    file->write(bytes);
    file->sync();
    file->close();
  }
  void rewrite(SystemCalls& calls) {
    std::filesystem::remove(folder.path() / "x");
    const auto file = RealVfs(calls).create(folder.path() / "x");
    file->write("bytes");
    file->sync();
    file->close();
  }
  std::string get(const std::string& name) { return vfs.read_file(folder.path() / name); }

  TemporaryFolder folder;
  Vfs& vfs = real_vfs();
};

TEST_F(VfsTest, WritesAndReadsBytes) {
  const std::string bytes("a\0b\n\xff", 5);
  put("x", bytes);
  EXPECT_EQ(get("x"), bytes);
  EXPECT_EQ(vfs.file_size(folder.path() / "x"), 5u);
  put("empty", "");
  EXPECT_EQ(get("empty"), "");
}

TEST_F(VfsTest, WritesInPieces) {
  const auto file = vfs.create(folder.path() / "x");
  const std::string piece(70'001, 'p');
  for (int i = 0; i < 3; ++i) file->write(piece);
  file->close();
  EXPECT_EQ(get("x"), piece + piece + piece);
}

TEST_F(VfsTest, ReadsFilesWhoseSizeIsUnknown) { EXPECT_FALSE(vfs.read_file("/proc/self/status").empty()); }

TEST_F(VfsTest, CreateRefusesAnExistingFile) {
  put("x", "old");
  expect_io_error([&] { vfs.create(folder.path() / "x"); }, {"vfs: create failed", "/x", "File exists"});
  EXPECT_EQ(get("x"), "old");
}

TEST_F(VfsTest, RenameRefusesAnExistingTargetAndReplaceTakesIt) {
  put("a", "a");
  put("b", "b");
  expect_io_error([&] { vfs.rename(folder.path() / "a", folder.path() / "b"); }, {"rename failed", "File exists"});
  EXPECT_EQ(get("b"), "b");
  vfs.replace(folder.path() / "a", folder.path() / "b");
  EXPECT_EQ(get("b"), "a");
  EXPECT_FALSE(vfs.exists(folder.path() / "a"));
}

TEST_F(VfsTest, ListsSortedWithoutFollowingLinks) {
  vfs.make_directory(folder.path() / "d");
  put("b", "");
  put("a", "");
  std::filesystem::create_directory_symlink("d", folder.path() / "link");
  std::string names;
  for (const DirectoryEntry& entry : vfs.list(folder.path())) names += entry.name + (entry.is_directory ? "/ " : " ");
  EXPECT_EQ(names, "a b d/ link ");
}

TEST_F(VfsTest, RemoveTreeRemovesLinksNotTheirTargets) {
  vfs.make_directory(folder.path() / "kept");
  put("kept/file", "x");
  vfs.make_directory(folder.path() / "gone");
  vfs.make_directory(folder.path() / "gone/inner");
  put("gone/inner/file", "x");
  std::filesystem::create_directory_symlink("../kept", folder.path() / "gone/link");
  vfs.remove_tree(folder.path() / "gone");
  EXPECT_FALSE(vfs.exists(folder.path() / "gone"));
  EXPECT_EQ(get("kept/file"), "x");
}

TEST_F(VfsTest, TheUmaskSaysWhoMayUseADirectory) {
  for (const mode_t mask : {mode_t{0}, mode_t{0027}}) {
    const mode_t before = ::umask(mask);
    vfs.make_directory(folder.path() / str(mask));
    ::umask(before);
    EXPECT_EQ(std::filesystem::status(folder.path() / str(mask)).permissions(),
              static_cast<std::filesystem::perms>(0777 & ~mask));
  }
}

TEST_F(VfsTest, ErrorsNameOperationPathAndReason) {
  expect_io_error([&] { get("no"); }, {"vfs: open failed: path is ", "/no: No such file or directory"});
  expect_io_error([&] { vfs.list(folder.path() / "no"); }, {"list failed", "/no: No such file"});
  expect_io_error([&] { vfs.remove(folder.path() / "no"); }, {"remove failed", "/no: No such file"});
  expect_io_error([&] { vfs.file_size(folder.path() / "no"); }, {"stat failed", "/no: No such file"});
  expect_io_error([&] { vfs.sync_directory(folder.path() / "no"); }, {"/no: No such file"});
  expect_io_error([&] { vfs.make_directory(folder.path()); }, {"mkdir failed", "File exists"});
  expect_io_error([&] { vfs.free_space(folder.path() / "no"); }, {"statvfs failed", "/no: No such file"});
  expect_io_error([&] { vfs.read_file(folder.path()); }, {"read failed", "Is a directory"});
}

TEST_F(VfsTest, AFailedWriteIsFinal) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);  // so that the limit fails the write instead of ending the process
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto file = vfs.create(folder.path() / "x");
  expect_io_error([&] { file->write(std::string(5000, 'x')); }, {"write failed", "/x: File too large"});
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old_handler);
  expect_io_error([&] { file->sync(); }, {"fsync failed", "an earlier write or fsync failed"});
  expect_io_error([&] { file->write("y"); }, {"write failed", "an earlier write or fsync failed"});
}

TEST_F(VfsTest, InterruptsWithoutEndBecomeErrors) {
  const auto write = [&](SystemCalls& calls) { rewrite(calls); };
  const auto read = [&](SystemCalls& calls) { RealVfs(calls).read_file(folder.path() / "x"); };
  expect_failure_of("create", EINTR, write, "vfs: create failed: path is", 1000);
  expect_failure_of("write", EINTR, write, "/x: Interrupted system call", 1000);
  rewrite(operating_system());
  expect_failure_of("open", EINTR, read, "vfs: open failed: path is", 1000);
  expect_failure_of("read", EINTR, read, "/x: Interrupted system call", 1000);
}

TEST_F(VfsTest, AFailedSyncOrCloseIsNotRepeated) {
  const auto write = [&](SystemCalls& calls) { rewrite(calls); };
  for (const int error : {EINTR, EIO}) {
    expect_failure_of("fsync", error, write, str("vfs: fsync failed: path is ", folder.path().string(), "/x: "), 1);
    expect_failure_of("close", error, write, str("vfs: close failed: path is ", folder.path().string(), "/x: "), 1);
    expect_failure_of(
        "fsync", error, [&](SystemCalls& calls) { RealVfs(calls).sync_directory(folder.path()); }, "vfs: fsync failed: path is",
        1);
  }
}

TEST_F(VfsTest, WritesThatWriteNothingBecomeErrors) {
  class NothingWritten final : public SystemCalls {
   public:
    ssize_t write(int, const void*, std::size_t) override { return 0; }
  } calls;
  RealVfs stuck(calls);
  const auto file = stuck.create(folder.path() / "x");
  expect_io_error([&] { file->write("bytes"); }, {"vfs: write failed", "/x: Input/output error"});
}

TEST_F(VfsTest, ListsWhereTheSystemDoesNotTellTypes) {
  class Untyped final : public SystemCalls {
   public:
    dirent* readdir(DIR* directory) override {
      dirent* entry = SystemCalls::readdir(directory);
      if (entry) entry->d_type = DT_UNKNOWN;
      return entry;
    }
  } calls;
  put("a", "");
  vfs.make_directory(folder.path() / "d");
  std::filesystem::create_directory_symlink("d", folder.path() / "link");
  std::string names;
  for (const DirectoryEntry& entry : RealVfs(calls).list(folder.path())) names += entry.name + (entry.is_directory ? "/ " : " ");
  EXPECT_EQ(names, "a d/ link ");
}

TEST_F(VfsTest, AClosedFileTakesNothing) {
  const auto file = vfs.create(folder.path() / "x");
  file->close();
  expect_io_error([&] { file->write("y"); }, {"write failed", "file is closed"});
  expect_io_error([&] { file->sync(); }, {"fsync failed", "file is closed"});
  expect_io_error([&] { file->close(); }, {"close failed", "file is closed"});
}

TEST_F(VfsTest, ReportsFreeSpace) { EXPECT_GT(vfs.free_space(folder.path()), 0u); }

TEST_F(VfsTest, AtomicWriteLeavesOldOrNewWhereverItFails) {
  FaultyVfs counter;
  write_file_atomically(counter, folder.path() / "status.json", "first");
  ASSERT_GE(counter.operations(), 6);
  for (int failing = 0; failing < counter.operations(); ++failing) {
    for (const Fault fault : {Fault::once, Fault::lasting}) {
      SCOPED_TRACE(str("operation ", failing));
      write_file_atomically(vfs, folder.path() / "status.json", "the old bytes");
      FaultyVfs faulty({.at = failing, .fault = fault});
      EXPECT_THROW(write_file_atomically(faulty, folder.path() / "status.json", "the new bytes"), IoError);
      const std::string bytes = get("status.json");
      EXPECT_TRUE(bytes == "the old bytes" || bytes == "the new bytes") << bytes;
      if (fault == Fault::once) {
        EXPECT_EQ(vfs.list(folder.path()).size(), 1u) << "a temporary file is left";
      }
      for (const DirectoryEntry& entry : vfs.list(folder.path())) vfs.remove(folder.path() / entry.name);
    }
  }
}

TEST_F(VfsTest, AtomicWriteSyncsBeforeItReplaces) {
  FaultyVfs faulty;
  write_file_atomically(faulty, folder.path() / "x", "bytes");
  std::string order;
  for (const std::string& line : faulty.log()) order += line.substr(0, line.find(' ')) + " ";
  EXPECT_EQ(order, "create write sync close replace syncdir ");
}

}  // namespace
}  // namespace tessera

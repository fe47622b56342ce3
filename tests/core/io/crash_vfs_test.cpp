#include "tests/core/io/crash_vfs.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/core/io/expect_error.h"

namespace tessera {
namespace {

class CrashVfsTest : public ::testing::Test {
 protected:
  CrashVfsTest() {
    vfs.make_directory("/run");
    vfs.sync_directory("/");
  }
  void put(const std::string& path, std::string_view bytes, bool synced) {
    const auto file = vfs.create(path);
    file->write(bytes);
    if (synced) file->sync();
    file->close();
  }
  // "name=bytes ..." for the entries of /run in an image.
  static std::string text(CrashVfs image) {
    std::string text;
    for (const DirectoryEntry& entry : image.list("/run")) {
      text += str(entry.name, "=", entry.is_directory ? "/" : image.read_file("/run/" + entry.name), " ");
    }
    return text;
  }
  std::string after(Survival survival, std::uint64_t seed = 1) { return text(vfs.image(survival, seed)); }

  CrashVfs vfs;
};

TEST_F(CrashVfsTest, ASyncedFileWithoutItsNameIsLost) {
  put("/run/a", "x", true);
  EXPECT_EQ(after(Survival::nothing), "");
  EXPECT_EQ(after(Survival::names), "a=x ");
  vfs.sync_directory("/run");
  EXPECT_EQ(after(Survival::nothing), "a=x ");
}

TEST_F(CrashVfsTest, ANameWithoutItsBytesIsEmpty) {
  put("/run/a", "x", false);
  vfs.sync_directory("/run");
  EXPECT_EQ(after(Survival::nothing), "a= ");
  EXPECT_EQ(after(Survival::names), "a= ");
  EXPECT_EQ(after(Survival::everything), "a=x ");
}

TEST_F(CrashVfsTest, RenamesAndRemovalsLastOnceTheDirectoryIsSynced) {
  put("/run/a", "x", true);
  put("/run/b", "y", true);
  vfs.sync_directory("/run");
  vfs.rename("/run/a", "/run/c");
  vfs.remove("/run/b");
  EXPECT_EQ(after(Survival::nothing), "a=x b=y ");
  EXPECT_EQ(after(Survival::everything), "c=x ");
  vfs.sync_directory("/run");
  EXPECT_EQ(after(Survival::nothing), "c=x ");
}

TEST_F(CrashVfsTest, PendingChangesSurviveInEveryCombination) {
  put("/run/a", "x", true);
  vfs.sync_directory("/run");
  put("/run/b", "y", true);
  vfs.rename("/run/a", "/run/c");
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 32; ++seed) seen.insert(after(Survival::reordered, seed));
  EXPECT_EQ(seen, (std::set<std::string>{"a=x ", "a=x b=y ", "b=y c=x ", "c=x "}));
}

TEST_F(CrashVfsTest, UnsyncedBytesAreTornAtSectors) {
  const std::string bytes(1300, 'x');
  put("/run/a", bytes, false);
  std::set<std::size_t> lengths;
  std::set<std::string> holes;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    lengths.insert(vfs.image(Survival::torn, seed).file_size("/run/a"));
    CrashVfs image = vfs.image(Survival::reordered, seed);
    if (!image.exists("/run/a")) continue;
    const std::string left = image.read_file("/run/a");
    ASSERT_EQ(left.size(), bytes.size());
    holes.insert({left[0], left[511], left[512], left[1023], left[1024], left[1299]});
  }
  EXPECT_EQ(lengths, (std::set<std::size_t>{0, 512, 1024}));
  EXPECT_EQ(holes.size(), 8u);
  for (const std::string& hole : holes) EXPECT_TRUE(hole[0] == hole[1] && hole[2] == hole[3] && hole[4] == hole[5]);
}

TEST_F(CrashVfsTest, ImagesAreIndependentAndRepeatable) {
  put("/run/a", std::string(5000, 'x'), false);
  EXPECT_EQ(vfs.image(Survival::reordered, 7).fingerprint(), vfs.image(Survival::reordered, 7).fingerprint());
  CrashVfs image = vfs.image(Survival::everything, 0);
  EXPECT_EQ(image.fingerprint(), vfs.fingerprint());
  image.remove("/run/a");
  EXPECT_NE(image.fingerprint(), vfs.fingerprint());
  EXPECT_TRUE(vfs.exists("/run/a"));
}

TEST_F(CrashVfsTest, AnnouncesEveryChangeBeforeItHappens) {
  std::string log;
  vfs.before_change = [&](const std::string& operation) { log += str(operation, vfs.exists("/run/a") ? "+ " : "- "); };
  put("/run/a", "x", true);
  vfs.replace("/run/a", "/run/b");
  vfs.sync_directory("/run");
  vfs.remove("/run/b");
  EXPECT_EQ(log, "create a- write a+ sync a+ close a+ replace b+ syncdir run- remove b- ");
  EXPECT_EQ(vfs.changes(), 9);  // two of them in the constructor
}

TEST_F(CrashVfsTest, FailsAsFilesDo) {
  put("/run/a", "x", true);
  expect_io_error([&] { vfs.create("/run/a"); }, {"vfs: create failed: path is /run/a: File exists"});
  expect_io_error([&] { vfs.create("/no/a"); }, {"create failed", "No such file"});
  expect_io_error([&] { vfs.read_file("/run/b"); }, {"vfs: open failed: path is /run/b: No such file"});
  expect_io_error([&] { vfs.make_directory("/run"); }, {"mkdir failed", "File exists"});
  expect_io_error([&] { vfs.remove("/run"); }, {"remove failed", "not empty"});
  expect_io_error([&] { vfs.rename("/run", "/run"); }, {"rename failed", "File exists"});
  expect_io_error([&] { vfs.list("/run/a"); }, {"list failed", "Not a directory"});
}

}  // namespace
}  // namespace tessera

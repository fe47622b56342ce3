// Cases that no simulation shows, on the real kernel: a full file system, a read-only one, and folders without permission.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/core/io/expect_error.h"
#include "tests/support/unprivileged.h"
#include "tests/train/checkpoint/store_fixture.h"

namespace tessera {
namespace {

// A mount that only this process sees. If mounting failed, `error` says why.
class Mount {
 public:
  Mount(const std::filesystem::path& path, const char* type, unsigned long flags, const char* options) : path_(path) {
    const bool mounted = ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount(path_.c_str(), path_.c_str(), type, flags, options) == 0;
    if (!mounted) error = std::strerror(errno);
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  ~Mount() {
    if (error.empty()) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool make_read_only() const { return ::mount(nullptr, path_.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0; }

  std::string error;

 private:
  std::filesystem::path path_;
};

class RealFileSystem : public CheckpointStoreTest {
 protected:
  void expect_intact(const std::vector<std::int64_t>& steps) {
    EXPECT_EQ(reader().steps(), steps);
    for (const std::int64_t step : steps) expect_checkpoint(reader().load(step), step);
  }
};

TEST_F(RealFileSystem, AFullOneKeepsWhatItHas) {
  std::filesystem::create_directory(folder);
  const Mount small(folder, "tmpfs", 0, "size=64k");
  if (!small.error.empty()) GTEST_SKIP() << "cannot mount a tmpfs: " << small.error;
  FaultyVfs roomy;  // reports free space that is not there: otherwise the check before the save would refuse
  CheckpointStore store = writer(roomy, 9);
  std::vector<std::int64_t> saved;
  std::string error;
  for (std::int64_t step = 1; step <= 9 && error.empty(); ++step) {
    try {
      store.save(step, parts_at(step), extra_at(step));  // may warn that it could not write `latest`
      saved.push_back(step);
    } catch (const IoError& failure) {
      error = failure.what();
    }
  }
  ASSERT_FALSE(saved.empty());
  EXPECT_NE(error.find("failed: path is " + folder.string()), std::string::npos) << error;
  EXPECT_NE(error.find(": No space left on device"), std::string::npos) << error;
  expect_intact(saved);
  EXPECT_EQ(real_vfs().list(folder).size(), saved.size() + 1) << "only checkpoints and `latest`: " << names();
  CheckpointStore careful = writer();
  expect_io_error([&] { save(careful, 9); }, {"checkpoint: not enough space: path is ", " needed"});
  expect_intact(saved);
}

// The file system has room for exactly three checkpoints. With keep = 2 every new one fits, because an old one is removed even
// when no byte is left for `latest`.
TEST_F(RealFileSystem, AFullOneGoesOnWhenOldOnesGo) {
  std::filesystem::create_directory(folder);
  const Mount small(folder, "tmpfs", 0, "size=64k");
  if (!small.error.empty()) GTEST_SKIP() << "cannot mount a tmpfs: " << small.error;
  FaultyVfs roomy;
  CheckpointStore store = writer(roomy, 2);
  for (std::int64_t step = 1; step <= 5; ++step) EXPECT_NO_THROW(store.save(step, parts_at(step), extra_at(step)));
  expect_intact({4, 5});
}

TEST_F(RealFileSystem, AReadOnlyOneIsReadAndNotWritten) {
  CheckpointStore store = writer();
  save(store, 1);
  save(store, 2);
  const Mount bound(folder, nullptr, MS_BIND, nullptr);
  if (!bound.error.empty()) GTEST_SKIP() << "cannot mount a folder on itself: " << bound.error;
  ASSERT_TRUE(bound.make_read_only()) << std::strerror(errno);
  expect_io_error([&] { store.save(3, parts_at(3), extra_at(3)); },
                  {"vfs: mkdir failed: path is ", folder.string(), ": Read-only file system"});
  expect_intact({1, 2});
  CheckpointStore again(real_vfs(), folder);
  again.open_for_writing(lock);  // there is nothing to remove
  EXPECT_THROW(again.save(3, parts_at(3), extra_at(3)), IoError);
  expect_intact({1, 2});
}

class Permissions : public RealFileSystem {
 protected:
  void SetUp() override {
    CheckpointStore store = writer();
    save(store, 1);
    save(store, 2);
    allow(run.path(), 0755);
  }
  void TearDown() override {
    for (const std::filesystem::path& path : {folder, folder / "step-00000002"}) allow(path, 0755);
  }
  static void allow(const std::filesystem::path& path, unsigned mode) {
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
  }
};

TEST_F(Permissions, AFolderThatMayNotBeWritten) {
  CheckpointStore store = writer();
  allow(folder, 0555);
  const testing::Unprivileged user;
  if (!user.given_up()) GTEST_SKIP() << "root cannot become another user";
  expect_io_error([&] { store.save(3, parts_at(3), extra_at(3)); },
                  {"vfs: mkdir failed: path is ", folder.string(), ": Permission denied"});
  expect_intact({1, 2});
}

TEST_F(Permissions, ACheckpointThatMayNotBeReadIsPassedOver) {
  allow(folder / "step-00000002", 0);
  const testing::Unprivileged user;
  if (!user.given_up()) GTEST_SKIP() << "root cannot become another user";
  const Checkpoint checkpoint = reader().load_latest();
  expect_checkpoint(checkpoint, 1);
  ASSERT_EQ(checkpoint.damaged.size(), 1u);
  EXPECT_NE(checkpoint.damaged[0].find("step-00000002/MANIFEST.json: Permission denied"), std::string::npos);
}

// An unreadable folder is not an empty one: a run must not start anew because its checkpoints could not be seen.
TEST_F(Permissions, AFolderThatMayNotBeReadIsAnError) {
  allow(folder, 0);
  const testing::Unprivileged user;
  if (!user.given_up()) GTEST_SKIP() << "root cannot become another user";
  expect_io_error([&] { reader().load_latest(); }, {"vfs: list failed: path is ", folder.string(), ": Permission denied"});
  expect_io_error([&] { reader().steps(); }, {"vfs: list failed", "Permission denied"});
}

}  // namespace
}  // namespace tessera

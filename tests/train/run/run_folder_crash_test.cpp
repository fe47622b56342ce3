// Cuts the power at every operation of a run's start: its folder, the files that make it a run, and its first checkpoint.
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/core/io/crash_vfs.h"
#include "tests/train/checkpoint/store_fixture.h"
#include "train/run/run_folder.h"

namespace tessera {
namespace {

constexpr const char* kRuns = "/new/runs";
constexpr const char* kFirst = "/new/runs/x/1";
constexpr const char* kResolved = "version: 1\n";

class NewRun : public CheckpointStoreTest {
 protected:
  // Does what Session::start and the first save do, in the same order.
  void begin(CrashVfs& disk) {
    disk.before_change = [&](const std::string& operation) { cut(disk, operation); };
    const RunFolder made = RunFolder::create(disk, kRuns, "x");
    made_ = true;
    CheckpointStore store(disk, made.checkpoints());
    store.open_for_writing(lock);
    write_file_atomically(disk, made.config(), kResolved);
    write_file_atomically(disk, made.resolved_config(), kResolved);
    resumable_ = true;
    store.save(1, parts_at(1), extra_at(1));
    saved_ = true;
    cut(disk, "none");
  }

  void cut(const CrashVfs& disk, const std::string& operation) {
    ++operations_;
    each_crash(disk, operations_, [&](const std::string& name, CrashVfs& left) {
      SCOPED_TRACE(str("before operation ", operations_, " (", operation, "), ", name));
      const bool there = left.exists(kFirst);
      EXPECT_TRUE(there || !made_);
      const std::string error = error_of_opening(left);
      if (error.empty()) {
        expect_resumable(left);
      } else {
        EXPECT_FALSE(resumable_);
        EXPECT_TRUE(error.starts_with(there ? "/new/runs/x/1 is not a run folder: " : "no run folder ")) << error;
      }
      EXPECT_EQ(expect_savable(left, RunFolder::create(left, kRuns, "x"), 7), there ? "/new/runs/x/2" : kFirst);
    });
  }

  static std::string error_of_opening(CrashVfs& left) {
    try {
      RunFolder::open(left, kFirst);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  void expect_resumable(CrashVfs& left) {
    const RunFolder found = RunFolder::open(left, kFirst);
    EXPECT_EQ(left.read_file(found.resolved_config()), kResolved);
    EXPECT_EQ(left.read_file(found.config()), kResolved);
    const CheckpointStore store(left, found.checkpoints());
    EXPECT_FALSE(saved_ && store.empty());
    if (!store.empty()) expect_checkpoint(store.load_latest(), 1);
    expect_savable(left, found, 2);
  }

  std::string expect_savable(CrashVfs& left, const RunFolder& found, std::int64_t step) {
    CheckpointStore store(left, found.checkpoints());
    store.open_for_writing(lock);
    save(store, step);
    expect_checkpoint(store.load_latest(), step);
    return found.path();
  }

  bool made_ = false;
  bool resumable_ = false;
  bool saved_ = false;
  std::uint64_t operations_ = 0;
};

TEST_F(NewRun, SurvivesACrashAtEveryOperation) {
  CrashVfs disk;
  begin(disk);
  EXPECT_GE(operations_, 40u);
}

}  // namespace
}  // namespace tessera

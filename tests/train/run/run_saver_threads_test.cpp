// A run that saves in the background of its training: `checkpoint.async`.
#include <gtest/gtest.h>

#include <latch>

#include "tests/core/io/expect_error.h"
#include "tests/core/io/gated_vfs.h"
#include "tests/train/checkpoint/failing_save.h"
#include "tests/train/checkpoint/store_fixture.h"
#include "train/run/run_saver.h"

namespace tessera {
namespace {

const CheckpointConfig kAsync{.keep = 3, .best = false, .async = true};

class AsyncRunSaver : public CheckpointStoreTest {
 protected:
  static void save(RunSaver& saver, std::int64_t step, bool stage_done = false) {
    saver.save({.global_step = step, .stage_done = stage_done}, parts_at(step), extra_at(step));
  }
};

TEST_F(AsyncRunSaver, ReturnsBeforeAnythingIsWritten) {
  GatedVfs vfs;
  std::latch gate(1);
  RunSaver saver(vfs, folder, kAsync, lock);
  vfs.gate = &gate;
  save(saver, 1);
  EXPECT_FALSE(saver.poll());
  EXPECT_TRUE(reader().empty());
  EXPECT_EQ(saver.last_step(), -1) << "not safe yet";
  EXPECT_TRUE(saver.holds({.global_step = 1})) << "but on its way";
  gate.count_down();
  EXPECT_TRUE(saver.finish());
  EXPECT_EQ(saver.last_step(), 1);
  expect_checkpoint(reader().load_latest(), 1);
}

TEST_F(AsyncRunSaver, AStagesLastSaveIsWaitedFor) {
  RunSaver saver(real_vfs(), folder, kAsync, lock);
  save(saver, 1, true);
  EXPECT_EQ(saver.last_step(), 1);
  EXPECT_FALSE(saver.finish()) << "nothing is left to wait for";
  expect_checkpoint(reader().load_latest(), 1);
}

TEST_F(AsyncRunSaver, AFailureIsThrownByTheNextSave) {
  for (const bool stage_done : {false, true}) {
    SCOPED_TRACE(stage_done);
    std::filesystem::remove_all(folder);
    FailingSave vfs(2);
    RunSaver saver(vfs, folder, kAsync, lock);
    save(saver, 1);
    save(saver, 2);
    EXPECT_EQ(saver.last_step(), 1);
    expect_io_error([&] { save(saver, 3, stage_done); }, {"vfs: create failed: path is ", "/.tmp-2-"});
    EXPECT_EQ(saver.last_step(), 1) << "neither the one that failed nor the one that was not begun";
    expect_checkpoint(reader().load_latest(), 1);
  }
}

TEST_F(AsyncRunSaver, AFailureIsThrownAtTheEnd) {
  FailingSave vfs(2);
  RunSaver saver(vfs, folder, kAsync, lock);
  save(saver, 1);
  save(saver, 2);
  expect_io_error([&] { saver.finish(); }, {"/.tmp-2-"});
  EXPECT_EQ(saver.last_step(), 1);
  EXPECT_FALSE(saver.finish()) << "an error is thrown once";
}

}  // namespace
}  // namespace tessera

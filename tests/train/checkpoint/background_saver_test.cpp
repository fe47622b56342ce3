#include "train/checkpoint/background_saver.h"

#include <atomic>
#include <latch>
#include <optional>

#include "tests/core/io/gated_vfs.h"
#include "tests/train/checkpoint/store_fixture.h"

namespace tessera {
namespace {

class BackgroundSaverTest : public CheckpointStoreTest {
 protected:
  void start(BackgroundSaver& saver, std::int64_t step) { saver.start(step, parts_at(step), extra_at(step)); }
};

TEST_F(BackgroundSaverTest, SavesWhatTheStateWasWhenItWasAsked) {
  GatedVfs vfs;
  CheckpointStore store = writer(vfs);
  BackgroundSaver saver(store);
  std::latch gate(1);
  vfs.gate = &gate;
  Parts parts = parts_at(1);
  saver.start(1, parts, extra_at(1));
  EXPECT_TRUE(saver.busy());
  EXPECT_FALSE(saver.poll().has_value());
  for (auto& [name, state] : parts) {
    for (auto& [path, tensor] : state.tensors) tensor.fill(1.0);
    state.meta.set("lr", -1.0);
  }
  gate.count_down();
  const std::optional<SaveResult> result = saver.wait();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->folder, folder / "step-00000001");
  EXPECT_FALSE(saver.busy());
  expect_checkpoint(reader().load_latest(), 1);
}

TEST_F(BackgroundSaverTest, WritesTheBytesOfASaveThatIsWaitedFor) {
  CheckpointStore store = writer();
  save(store, 1);
  const std::string direct = bytes_of("step-00000001/MANIFEST.json");  // the manifest holds every file's hash
  std::filesystem::remove_all(folder / "step-00000001");
  BackgroundSaver saver(store);
  start(saver, 1);
  saver.wait();
  EXPECT_EQ(bytes_of("step-00000001/MANIFEST.json"), direct);
}

TEST_F(BackgroundSaverTest, HandsAFailureToWhoeverAsksAndCanGoOn) {
  CheckpointStore good = writer();
  save(good, 1);
  FaultyVfs faulty({.at = 0});
  CheckpointStore store = writer(faulty);
  BackgroundSaver saver(store);
  start(saver, 2);
  EXPECT_THROW(saver.wait(), IoError);
  EXPECT_FALSE(saver.busy());
  EXPECT_FALSE(saver.wait().has_value()) << "an error is thrown once";
  expect_checkpoint(reader().load_latest(), 1);
  start(saver, 3);
  EXPECT_TRUE(saver.wait().has_value());
  expect_checkpoint(reader().load_latest(), 3);
}

TEST_F(BackgroundSaverTest, RefusesASecondSaveUntilTheFirstIsTaken) {
  CheckpointStore store = writer();
  BackgroundSaver saver(store);
  start(saver, 1);
  EXPECT_THROW(start(saver, 2), InternalError);
  EXPECT_TRUE(saver.wait().has_value());
  start(saver, 2);
  EXPECT_TRUE(saver.wait().has_value());
}

TEST_F(BackgroundSaverTest, CallsBackOnlyWhenTheCheckpointIsSafe) {
  CheckpointStore store = writer();
  std::atomic<int> calls = 0;
  {
    BackgroundSaver saver(store);
    saver.start(1, parts_at(1), extra_at(1), [&] {
      ++calls;
      expect_checkpoint(reader().load_latest(), 1);
    });
  }
  EXPECT_EQ(calls, 1) << "the end of the saver waits";
  FaultyVfs faulty({.at = 0});
  CheckpointStore failing = writer(faulty);
  { BackgroundSaver(failing).start(2, parts_at(2), extra_at(2), [&] { ++calls; }); }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tessera

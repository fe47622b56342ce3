#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/checkpoint/store_fixture.h"

namespace tessera {
namespace {

// Every operation of a save fails in turn, once or with all that follow. The earlier checkpoint or the new one loads intact.
TEST_F(CheckpointStoreTest, NoFailureLosesACheckpoint) {
  int operations = 0;
  {
    FaultyVfs counter;
    CheckpointStore store = writer(counter, 1);
    save(store, 1);
    const int before = counter.operations();
    save(store, 2);
    operations = counter.operations() - before;
  }
  ASSERT_GT(operations, 30);
  for (const Fault fault : {Fault::once, Fault::lasting}) {
    for (int failing = 0; failing < operations; ++failing) {
      SCOPED_TRACE(str(fault == Fault::once ? "failing once" : "crashing", " at operation ", failing));
      std::filesystem::remove_all(folder);
      CheckpointStore first = writer(1);
      save(first, 1);
      FaultyVfs faulty({.at = failing, .fault = fault});
      CheckpointStore store = writer(faulty, 1);
      ASSERT_EQ(faulty.operations(), 0);
      bool reported = false;
      try {
        reported = !store.save(2, parts_at(2), extra_at(2)).warnings.empty();
      } catch (const IoError& error) {
        reported = true;
        EXPECT_NE(std::string_view(error.what()).find("No space left on device"), std::string_view::npos) << error.what();
      }
      EXPECT_TRUE(reported) << "a failure went unseen";
      const Checkpoint checkpoint = reader().load_latest();
      expect_checkpoint(checkpoint, checkpoint.step == 2 ? 2 : 1);
      CheckpointStore again = writer(1);
      save(again, 3);
      EXPECT_EQ(names(), "latest step-00000003 ");
    }
  }
}

// Refuses to create or rename an entry whose name begins with this prefix.
class RefusingVfs final : public ForwardingVfs {
 public:
  explicit RefusingVfs(std::string prefix) : ForwardingVfs(real_vfs()), prefix_(std::move(prefix)) {}
  std::unique_ptr<WritableFile> create(const Path& path) override { return check(path), below_.create(path); }
  void rename(const Path& from, const Path& to) override { check(to), below_.rename(from, to); }

 private:
  void check(const Path& path) const {
    TESSERA_CHECK(!path.filename().string().starts_with(prefix_), IoError, "vfs: create failed: path is ", path.string(),
                  ": refused");
  }
  std::string prefix_;
};

// As on a full disk. If one failure stopped the removals after it, nothing would ever be removed again.
TEST_F(CheckpointStoreTest, NoFailureStopsTheRemovalOfTheOthers) {
  for (const std::string failing : {".latest.tmp-", ".trash-step-00000001-"}) {
    SCOPED_TRACE(failing);
    std::filesystem::remove_all(folder);
    CheckpointStore first = writer(2);
    save(first, 1);
    save(first, 2);
    RefusingVfs refusing(failing);
    CheckpointStore store = writer(refusing, 1);
    const SaveResult result = store.save(3, parts_at(3), extra_at(3));
    ASSERT_EQ(result.warnings.size(), 1u);
    EXPECT_EQ(names(), failing == ".latest.tmp-" ? "latest step-00000003 " : "latest step-00000001 step-00000003 ");
  }
}

// The order of operations decides what survives a power cut. No test can cut the power here, so it checks the order itself.
TEST_F(CheckpointStoreTest, MakesEverythingDurableBeforeTheRename) {
  FaultyVfs vfs;
  CheckpointStore store = writer(vfs);
  const std::size_t start = vfs.log().size();
  save(store, 1);
  std::vector<std::string> log(vfs.log().begin() + static_cast<std::ptrdiff_t>(start), vfs.log().end());
  const auto index = [&](const std::string& line) { return std::ranges::find(log, line) - log.begin(); };
  const auto rename = index("rename step-00000001");
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "mask.safetensors", "state.json", "MANIFEST.json"}) {
    EXPECT_LT(index(str("create ", name)), index(str("sync ", name))) << name;
    EXPECT_LT(index(str("sync ", name)), index(str("close ", name))) << name;
    EXPECT_LT(index(str("close ", name)), rename) << name;
    EXPECT_LE(index(str("create ", name)), index("create MANIFEST.json")) << name;
  }
  ASSERT_GT(rename, 0);
  EXPECT_EQ(log[static_cast<std::size_t>(rename) - 1].substr(0, 13), "syncdir .tmp-");
  EXPECT_EQ(log[static_cast<std::size_t>(rename) + 1], "syncdir checkpoints");
}

}  // namespace
}  // namespace tessera

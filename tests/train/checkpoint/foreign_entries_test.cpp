// A folder of checkpoints may hold foreign entries. They are neither read nor removed, and no save fails because of them.
#include <gtest/gtest.h>

#include <functional>

#include "tests/core/io/expect_error.h"
#include "tests/train/checkpoint/store_fixture.h"

namespace tessera {
namespace {

// The store names its folders step-, at least eight digits, and optionally .revision, a number from 1 without leading zeros.
constexpr const char* kNoNames[] = {"step-",
                                    "step-abc",
                                    "step-000001x",
                                    "step-1",
                                    "step-0000001",
                                    "step-00000001.",
                                    "step-00000001.0",
                                    "step-00000001.01",
                                    "step-00000001.x",
                                    "step-00000001.1.1",
                                    "step--0000001",
                                    "step-+0000001",
                                    "step- 0000001",
                                    "step-000000001",
                                    "Step-00000009",
                                    "step-00000009 ",
                                    "xstep-00000009",
                                    "step-99999999999999999999",
                                    "step-00000001.99999999999999999999",
                                    "step-9223372036854775807",
                                    "step-00000001.9223372036854775807"};

class ForeignEntries : public CheckpointStoreTest {
 protected:
  void SetUp() override {
    CheckpointStore store = writer();
    save(store, 1);
    save(store, 2);
  }
  void expect_undisturbed() {
    const Checkpoint checkpoint = reader().load_latest();
    expect_checkpoint(checkpoint, 2);
    EXPECT_TRUE(checkpoint.damaged.empty());
    EXPECT_EQ(reader().steps(), (std::vector<std::int64_t>{1, 2}));
  }
};

TEST_F(ForeignEntries, FoldersOfOtherNames) {
  for (const char* name : kNoNames) {
    std::filesystem::copy(folder / "step-00000001", folder / name, std::filesystem::copy_options::recursive);
  }
  expect_undisturbed();
  CheckpointStore store = writer(1);
  save(store, 3);
  EXPECT_EQ(reader().steps(), (std::vector<std::int64_t>{3}));
  for (const char* name : kNoNames) EXPECT_TRUE(std::filesystem::exists(folder / name / "MANIFEST.json")) << name;
}

TEST_F(ForeignEntries, FilesAndSymbolicLinks) {
  overwrite("notes.txt", "x");
  overwrite("step-00000007", "a file");
  std::filesystem::create_directory_symlink("step-00000001", folder / "step-00000008");
  std::filesystem::create_symlink("nowhere", folder / "step-00000009");
  std::filesystem::create_symlink("step-00000009", folder / "step-00000009.1");
  expect_undisturbed();
  EXPECT_THROW(reader().load(7), IoError);
  EXPECT_THROW(reader().load(8), IoError);
  std::filesystem::remove(folder / "latest");
  std::filesystem::create_symlink("step-00000009", folder / "latest");
  expect_undisturbed();
}

// If a foreign entry has the name already, the store takes the next revision.
TEST_F(ForeignEntries, ANameThatIsTakenGetsARevision) {
  overwrite("step-00000007", "a file");
  std::filesystem::create_symlink("nowhere", folder / "step-00000007.1");
  CheckpointStore store = writer(1);
  EXPECT_EQ(store.save(7, parts_at(7), extra_at(7)).folder.filename(), "step-00000007.2");
  expect_checkpoint(reader().load_latest(), 7);
  EXPECT_EQ(bytes_of("step-00000007"), "a file");
  EXPECT_EQ(names(), "latest step-00000007 step-00000007.1 step-00000007.2 ");
}

TEST_F(ForeignEntries, AFolderThatIsNoCheckpointUnderACheckpointsName) {
  std::filesystem::create_directory(folder / "step-00000009");
  const Checkpoint checkpoint = reader().load_latest();
  expect_checkpoint(checkpoint, 2);
  ASSERT_EQ(checkpoint.damaged.size(), 1u);
  EXPECT_NE(checkpoint.damaged[0].find("step-00000009/MANIFEST.json: No such file"), std::string::npos);
}

TEST_F(ForeignEntries, AFileInPlaceOfTheFolder) {
  const std::filesystem::path file = run.path() / "LOCK";
  const CheckpointStore store(real_vfs(), file);
  expect_io_error([&] { store.load_latest(); }, {"vfs: list failed: path is ", "/LOCK: Not a directory"});
}

// A reader holds no lock. A training run may replace every checkpoint between the reader's listing and its reading.
TEST_F(ForeignEntries, CheckpointsReplacedWhileReading) {
  class Overtaken final : public ForwardingVfs {
   public:
    Overtaken(Vfs& below, std::function<void()> overtake) : ForwardingVfs(below), overtake_(std::move(overtake)) {}
    std::string read_file(const Path& path) override {
      if (overtake_) std::exchange(overtake_, nullptr)();
      return below_.read_file(path);
    }

   private:
    std::function<void()> overtake_;
  };
  CheckpointStore trainer = writer(1);
  Overtaken vfs(real_vfs(), [&] { save(trainer, 3); });
  expect_checkpoint(CheckpointStore(vfs, folder).load_latest(), 3);
}

}  // namespace
}  // namespace tessera

// What a reader reports of unreadable checkpoints: damaged ones, but not those that a running run has removed.
#include "train/run/saved_point.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/read.h"
#include "core/support/error.h"
#include "tests/core/io/forwarding_vfs.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/scopes.h"

namespace tessera {
namespace {

// Removes a checkpoint just before one of its files is read.
class RemovesWhileRead final : public ForwardingVfs {
 public:
  RemovesWhileRead(std::string checkpoint, std::string file)
      : ForwardingVfs(real_vfs()), checkpoint_(std::move(checkpoint)), file_(std::move(file)) {}

  std::string read_file(const Path& path) override {
    const Path folder = path.parent_path();
    if (folder.filename() == checkpoint_ && path.filename() == file_) below_.remove_tree(folder);
    return below_.read_file(path);
  }

 private:
  std::string checkpoint_;
  std::string file_;
};

class SavedPoints : public ::testing::Test {
 protected:
  void SetUp() override {
    const RunLock lock(run_.path());
    CheckpointStore store(real_vfs(), run_.checkpoints());
    store.open_for_writing(lock);
    for (const std::int64_t step : {1, 2, 3}) {
      State model;
      model.tensors["weight"] = Tensor::full({3}, static_cast<double>(step));
      Value extra = Value::map();
      extra.set("position", write(Position{.global_step = step}));
      extra.set("stage_name", "dense");
      store.save(step, {{"model", model}}, extra);
    }
  }

  void damage_file(const std::string& name) const {
    const std::filesystem::path path = std::filesystem::path(run_.checkpoints()) / name;
    std::string bytes = real_vfs().read_file(path);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write_file_atomically(real_vfs(), path, bytes);
  }
  std::vector<std::int64_t> steps(Vfs& vfs) const {
    std::vector<std::int64_t> steps;
    for (const SavedPoint& point : saved_points(vfs, run_)) steps.push_back(point.manifest.step);
    return steps;
  }
  void expect_warning_of(const std::string& file) const {
    EXPECT_TRUE(warnings_.starts_with("passed over a damaged checkpoint: ")) << warnings_;
    EXPECT_NE(warnings_.find(file), std::string::npos) << warnings_;
    EXPECT_EQ(std::ranges::count(warnings_, '\n'), 1) << warnings_;
  }

  TemporaryFolder folder_;
  RunFolder run_ = RunFolder::create(real_vfs(), folder_.path().string(), "x");
  std::string warnings_;
  testing::LogSinkScope sink_{[this](LogLevel, std::string_view text) { warnings_ += str(text, '\n'); }};
};

using Steps = std::vector<std::int64_t>;

TEST_F(SavedPoints, OneThatIsRemovedWhileItIsReadIsNoWarning) {
  RemovesWhileRead vfs("step-00000002", "MANIFEST.json");
  EXPECT_EQ(steps(vfs), (Steps{1, 3}));
  EXPECT_EQ(warnings_, "");
}

TEST_F(SavedPoints, ADamagedOneIsAWarning) {
  damage_file("step-00000002/MANIFEST.json");
  EXPECT_EQ(steps(real_vfs()), (Steps{1, 3}));
  expect_warning_of("step-00000002/MANIFEST.json");
}

TEST_F(SavedPoints, TheNewestIsTheOneBeforeWhenItIsRemovedWhileItIsRead) {
  for (const char* const file : {"MANIFEST.json", "model.safetensors"}) {
    const std::string newest = real_vfs().list(run_.checkpoints()).back().name;
    RemovesWhileRead vfs(newest, file);
    const std::int64_t loaded = load_newest(vfs, run_).step;
    EXPECT_EQ(loaded, std::ranges::max(steps(real_vfs()))) << newest;
    EXPECT_FALSE(real_vfs().exists(std::filesystem::path(run_.checkpoints()) / newest));
  }
  EXPECT_EQ(steps(real_vfs()), Steps{1});
  EXPECT_EQ(warnings_, "");
}

TEST_F(SavedPoints, TheNewestIsTheOneBeforeADamagedOne) {
  damage_file("step-00000003/model.safetensors");
  EXPECT_EQ(load_newest(real_vfs(), run_).step, 2);
  expect_warning_of("step-00000003/model.safetensors");
}

}  // namespace
}  // namespace tessera
